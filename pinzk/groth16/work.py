# SPDX-License-Identifier: Apache-2.0
"""A proof from beginning to end: what it works on, its clock, its result, and what a prover keeps for all of them."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled
from ..formats.bellman import BellmanKey
from ..formats.zkey import Zkey
from .constraints import R1cs
from .keys import ProvingKey
from .proof import Proof
from .verifying_key import VerifyingKey

if TYPE_CHECKING:
    from .engine import Begun, Engine


@dataclass(frozen=True)
class ProofResult:
    """What `Prover.prove` returns.

    Attributes
    ----------
    proof : Proof
    public : list of int
        The public values in the key's order, without the leading one.
    stats : dict
        ``device``, ``threads``, ``curve``, ``sizes``, ``seconds`` (by stage, and ``total``; names with ``device_``
        are times between events on the GPU, which may overlap), ``self_check`` (False where it was turned off), ``retries``
        (1 where a proof of a GPU did not verify and was made again). Plain values, ready for JSON.
    """

    proof: Proof
    public: list[int]
    stats: dict[str, Any]


class Clock:
    """Seconds by stage; a stage does not begin once `stop` was called."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._seconds: dict[str, float] = {}
        self._stopped = False

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """The body is a stage."""
        if self._stopped:
            raise Cancelled("the proof was cancelled")
        begin = time.perf_counter()
        yield
        self._seconds[stage] = time.perf_counter() - begin

    def add(self, stage: str, seconds: float) -> None:
        """A stage that another clock measured."""
        self._seconds[stage] = seconds

    def stop(self) -> None:
        """Let no other stage begin: it raises `Cancelled`."""
        self._stopped = True

    def finish(self) -> dict[str, float]:
        """Seconds of each stage, and in all."""
        return {**self._seconds, "total": time.perf_counter() - self._start}


@dataclass(repr=False)
class Work:
    """One proof under way. It holds what it needs of the key: closing that does not stop it.

    Attributes
    ----------
    given : ProvingAssignment or ndarray of uint64, shape (n_vars, 4), or None
        What it starts from, an assignment or a canonical witness; None once started.
    r, s : int
        The blinding.
    begun : Begun
        What the engine has under way, once started.
    """

    engine: Engine
    owner: ProvingKey
    key: Zkey | BellmanKey
    vk: VerifyingKey
    r1cs: R1cs | None
    sizes: dict[str, int]
    given: Any
    clock: Clock = field(default_factory=Clock)
    r: int = field(init=False)
    s: int = field(init=False)
    begun: Begun = field(init=False)


class Own:
    """What a prover makes for itself: one thread for proofs under way."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="pinzk-prover")

    def is_of_this_process(self) -> bool:
        """False in a child that was forked since."""
        return self._process == os.getpid()


@contextmanager
def views_dropped() -> Iterator[None]:
    """An error that passes lets go of the variables of the functions below, so that no view among them keeps a borrow."""
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise

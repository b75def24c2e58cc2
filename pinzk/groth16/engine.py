# SPDX-License-Identifier: Apache-2.0
"""Engine: who computes a proof's five sums, the processors or a GPU. The prover does the rest and knows neither."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .._core.assignment import ProvingAssignment
from ..curves import Words
from .keys import ProvingKey
from .plan import MemoryPlan
from .work import Clock


class Sums(NamedTuple):
    """The sums over the key's queries, affine points, shape (1, limbs); the names are the prover's."""

    a: Words
    b_1: Words
    b_2: Words
    l: Words  # noqa: E741
    h: Words


class Begun(Protocol):
    """A proof under way in an engine, whose a, b and c are read and given back.

    Attributes
    ----------
    public : list of int
        The public values, without the leading one.
    """

    @property
    def public(self) -> list[int]: ...  # noqa: D102

    def sums(self, clock: Clock) -> Sums:
        """Wait for the sums, once; what the engine held of the proof is given back."""
        ...

    def wires(self) -> Words:
        """All wires, canonical, shape (n_vars, 4), until `release`."""
        ...

    def release(self) -> None:
        """Give back what is left of the proof. Idempotent."""
        ...


class Engine(Protocol):
    """Computes sums for one key. Thread-safe.

    Attributes
    ----------
    device : str
        As `stats["device"]` says it.
    fallible : bool
        Whether a wrong sum may be the machine's fault: then a proof that does not verify is made once more.
    plan : MemoryPlan
    """

    device: str
    fallible: bool
    plan: MemoryPlan

    def begin(self, assignment: ProvingAssignment, clock: Clock) -> Begun:
        """Take a sealed assignment that fits the key; returns when the last read of a, b and c is done or enqueued.

        By then these are given back, by `release_abc`; the rest is by `Begun.release` at the latest.
        """
        ...

    def begin_witness(self, owner: ProvingKey, witness: Words, clock: Clock) -> Begun:
        """The same from a canonical witness of the right length: rows are evaluated by the key's matrices or its r1cs."""
        ...

    def close(self) -> None:
        """Let go of what is kept for the key. Proofs under way end normally."""
        ...

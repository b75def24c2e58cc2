# SPDX-License-Identifier: Apache-2.0
"""PendingProof: a proof under way, of which everything that needs a, b and c is done; and several begun at once."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .._core.assignment import ProvingAssignment
from ..errors import Cancelled, UseAfterRelease, WaitTimeout

if TYPE_CHECKING:
    from .prover import Prover
    from .work import ProofResult


class PendingProof:
    """A proof under way. `Prover.prove_start` makes it; its remaining stages run on the prover's own thread.

    Dropping it cancels it. The assignment it was made from is home already.
    """

    def __init__(self, future: concurrent.futures.Future[ProofResult], stop: Callable[[], None]) -> None:
        self._future: concurrent.futures.Future[ProofResult] | None = future
        self._stop = stop
        self._cancelled = False

    def finish(self, timeout: float | None = None) -> ProofResult:
        """Wait for the proof and take it, once.

        Parameters
        ----------
        timeout : float, optional
            Seconds.

        Raises
        ------
        WaitTimeout
            It is not done yet; ask again.
        Cancelled
            `cancel` was called.
        UseAfterRelease
            The proof, or the error it ended with, was taken before.
        WitnessError, SelfCheckError
            As `Prover.prove`.
        """
        if self._cancelled:
            raise Cancelled("the proof was cancelled")
        future = self._future
        if future is None:
            raise UseAfterRelease("the proof was taken before: finish() gives it once")
        if not concurrent.futures.wait([future], timeout).done:
            raise WaitTimeout(f"the proof is not done after {timeout} s; call finish() again")
        if self._cancelled:  # by another thread, meanwhile
            raise Cancelled("the proof was cancelled")
        self._future = None
        return future.result()

    def done(self) -> bool:
        """Whether `finish` would return, or raise, at once."""
        return self._cancelled or self._future is None or self._future.done()

    def cancel(self) -> None:
        """Stop after the stage that is running, and let go of everything. Idempotent; nothing happens to a proof taken."""
        if self._future is not None:
            self._cancelled = True
            self._stop()
            self._future.cancel()
            self._future = None

    def __del__(self) -> None:
        if getattr(self, "_future", None) is not None:
            self.cancel()

    def __reduce__(self) -> Any:
        raise TypeError("a PendingProof cannot be copied or pickled: it gives its proof once")

    def __repr__(self) -> str:
        state = "cancelled" if self._cancelled else "taken" if self._future is None else None
        return f"<PendingProof, {state or ('done' if self.done() else 'under way')}>"


def prove_start(prover: Prover, assignments: Iterable[Any]) -> list[PendingProof]:
    """Begin several proofs: all inputs are validated, then all are started, as by `Prover.prove_start`.

    Raises
    ------
    ValueError
        One assignment comes twice.
    KeyMismatchError, WitnessError
        As `Prover.prove_start`. If an input is refused, nothing was taken; if a start fails, those before it are cancelled.
    """
    given = list(assignments)
    taken = [id(x) for x in given if isinstance(x, ProvingAssignment)]
    if len(set(taken)) != len(taken):
        raise ValueError("one assignment comes twice")
    accepted = [prover._accept(x) for x in given]
    started: list[PendingProof] = []
    try:
        for work in accepted:
            started.append(prover._pending(prover._start(work)))
    except BaseException:
        for pending in started:
            pending.cancel()
        raise
    return started

# SPDX-License-Identifier: Apache-2.0
"""Many proofs: drawn from an iterable while others are made, on one prover or several, given back in order."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from .._core.assignment import ProvingAssignment
from .work import ProofResult

if TYPE_CHECKING:
    from .prover import Prover


def prove_many(provers: Sequence[Prover], items: Iterable[Any], *, depth: int = 2) -> Iterator[ProofResult]:
    """Prove item after item, each on the next prover that is free.

    Items are drawn one at a time, on threads of their own: an iterable that synthesises does so while the provers work on
    the items before. Drawing stops where results are not taken: no more than 2 depth items a prover are drawn and not
    yielded.

    Parameters
    ----------
    provers : sequence of Prover
        Of one key; usually one for each device.
    items : iterable
        Of what `Prover.prove` takes.
    depth : int, default 2
        Proofs under way at a time on each prover.

    Yields
    ------
    ProofResult
        In the order of the items.

    Raises
    ------
    ValueError
        No prover, or `depth` is not a positive int; when called, before anything is drawn.
    Exception
        What drawing an item or proving it raised, in its place in the order: results before it are yielded, proofs behind it
        end unseen, assignments drawn and not begun are released, and nothing more is drawn.
    """
    provers = list(provers)
    if not provers:
        raise ValueError("prove_many needs a prover")
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ValueError(f"depth must be a positive int, not {depth!r}")
    return _Batch(provers, iter(items), depth).results()


class _Batch:
    """The threads of one call, and what they share."""

    def __init__(self, provers: list[Prover], items: Iterator[Any], depth: int) -> None:
        self.items = items
        self.drawing = threading.Lock()
        self.changed = threading.Condition()
        self.room = 2 * depth * len(provers)  # items that may be drawn before another result is taken
        self.stopped = False
        self.queue: list[Future[ProofResult]] = []  # drawn and not yielded, in order
        self.working = depth * len(provers)
        self.threads = [
            threading.Thread(target=self.work, args=(p,), name="pinzk-batch", daemon=True)
            for p in provers
            for _ in range(depth)
        ]

    def results(self) -> Iterator[ProofResult]:
        for thread in self.threads:
            thread.start()
        try:
            while True:
                with self.changed:
                    self.changed.wait_for(lambda: self.queue or not self.working)
                    if not self.queue:
                        return
                    future = self.queue[0]
                result = future.result()
                with self.changed:
                    del self.queue[0]
                    self.room += 1
                    self.changed.notify_all()
                yield result
        finally:
            with self.changed:
                self.stopped = True
                self.changed.notify_all()
            for thread in self.threads:
                thread.join()

    def work(self, prover: Prover) -> None:
        try:
            while (drawn := self.draw()) is not None:
                item, future = drawn
                try:
                    future.set_result(prover.prove(item))
                except BaseException as error:
                    future.set_exception(error)
                    self.stop()
                del drawn, item, future  # nothing of a proof outlives it while the next item is waited for
        finally:
            with self.changed:
                self.working -= 1
                self.changed.notify_all()

    def draw(self) -> tuple[Any, Future[ProofResult]] | None:
        with self.drawing:
            with self.changed:
                self.changed.wait_for(lambda: self.stopped or self.room)
                if self.stopped:
                    return None
                self.room -= 1
            future: Future[ProofResult] = Future()
            try:
                item = next(self.items)
            except StopIteration:
                self.stop()
                return None
            except BaseException as error:
                future.set_exception(error)
                self.put(future)
                self.stop()
                return None
            if self.stopped:  # while it was drawn: nobody will ask for it
                if isinstance(item, ProvingAssignment):
                    item.release()
                return None
            self.put(future)
            return item, future

    def put(self, future: Future[ProofResult]) -> None:
        with self.changed:
            self.queue.append(future)
            self.changed.notify_all()

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()

# SPDX-License-Identifier: Apache-2.0
"""Many proofs: order, several provers, drawing that stops in time, errors in their place; and proofs under asyncio."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from test_bellman import CURVE, SECRET, squares

from pinzk import ProvingAssignment
from pinzk._core.memory import MemoryBudget, PinnedPool
from pinzk.errors import UseAfterRelease, WitnessError
from pinzk.groth16.batch import prove_many
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import _setup
from pinzk.groth16.verifier import verify

CIRCUIT = squares(12, 2)
KEY = _setup(CIRCUIT.r1cs(), SECRET, "snarkjs")
OTHER = _setup(CIRCUIT.r1cs(), SECRET, "bellman")
GOOD = CIRCUIT.witness
BAD = [*GOOD[:-1], GOOD[-1] + 1]


@pytest.fixture
def prover() -> Iterator[Prover]:
    with Prover(KEY, device="cpu", threads=1) as p:
        yield p


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Proofs wait for this event."""
    go, honest = threading.Event(), Prover.prove

    def prove(self: Prover, witness: Any) -> Any:
        assert go.wait(30)
        return honest(self, witness)

    monkeypatch.setattr(Prover, "prove", prove)
    return go


def assert_no_thread_is_left() -> None:
    assert not [t for t in threading.enumerate() if t.name == "pinzk-batch"]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(prover, monkeypatch, depth):
    honest = Prover.prove
    marks = {}

    def prove(self, item):
        number, witness = item
        time.sleep(0.02 * (number % 3))  # later ones overtake
        result = honest(self, witness)
        marks[id(result)] = number
        return result

    monkeypatch.setattr(Prover, "prove", prove)
    results = list(prover.prove_many(((i, GOOD) for i in range(9)), depth=depth))
    assert [marks[id(r)] for r in results] == list(range(9))
    assert all(verify(KEY.vk, r.public, r.proof) for r in results)
    assert_no_thread_is_left()


def test_several_provers_share_the_items(monkeypatch):
    used, honest = set(), Prover.prove
    meet = threading.Barrier(2, timeout=30)  # passes only if both provers work at one time

    def prove(self, item):
        if id(self) not in used:
            used.add(id(self))
            meet.wait()
        return honest(self, item)

    monkeypatch.setattr(Prover, "prove", prove)
    with Prover(KEY, device="cpu", threads=1) as one, Prover(KEY, device="cpu", threads=1) as two:
        results = list(prove_many([one, two], [GOOD] * 6, depth=1))
    assert len(results) == 6 and used == {id(one), id(two)}


def test_items_are_drawn_while_proofs_are_made_and_no_further(prover, slow):
    drawn = []

    def items():
        for i in range(100):
            drawn.append(i)
            yield GOOD

    results = prover.prove_many(items(), depth=2)
    assert drawn == []  # nothing before the first result is asked for
    taker = threading.Thread(target=lambda: next(results))
    taker.start()
    while len(drawn) < 2:
        time.sleep(0.01)
    assert len(drawn) <= 4
    slow.set()
    taker.join()
    time.sleep(0.2)
    assert len(drawn) <= 5  # one was taken
    results.close()
    assert_no_thread_is_left()


def test_no_items_are_no_results(prover):
    assert list(prover.prove_many([])) == []


@pytest.mark.parametrize("depth", [0, -1, True, 1.5])
def test_a_wrong_depth_is_refused_at_once(prover, depth):
    with pytest.raises(ValueError, match="depth"):
        prover.prove_many([GOOD], depth=depth)


def test_no_prover_is_refused_at_once():
    with pytest.raises(ValueError, match="needs a prover"):
        prove_many([], [GOOD])


def test_a_bad_item_raises_in_its_place(prover):
    results = prover.prove_many([GOOD, GOOD, BAD, GOOD], depth=3)
    assert len([next(results), next(results)]) == 2
    with pytest.raises(WitnessError):
        next(results)
    with pytest.raises(StopIteration):
        next(results)
    assert_no_thread_is_left()


def test_an_error_of_the_source_raises_in_its_place(prover):
    def items():
        yield GOOD
        raise OSError("the disk is gone")

    results = prover.prove_many(items())
    next(results)
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)
    assert_no_thread_is_left()


def test_assignments_are_taken_and_memory_comes_home_whatever_happens():
    pool = PinnedPool(MemoryBudget(256 << 20), kind="pageable")

    def assignments():
        for witness in (GOOD, GOOD, BAD, GOOD, GOOD, GOOD):
            a = ProvingAssignment(CURVE, pool=pool)
            CIRCUIT.r1cs().evaluate_into(a, witness)
            yield a

    with Prover(OTHER, device="cpu", threads=1) as prover:
        results = prover.prove_many(assignments())
        next(results)
        with pytest.raises(WitnessError):
            for _ in results:
                pass
    gc.collect()
    assert pool.stats().out == 0
    assert_no_thread_is_left()


def test_a_closed_prover_says_so(prover):
    prover.close()
    with pytest.raises(UseAfterRelease):
        list(prover.prove_many([GOOD]))


# ---- asyncio ----


def test_proofs_are_awaited_side_by_side(prover):
    async def main():
        return await asyncio.gather(*(prover.prove_async(GOOD) for _ in range(4)))

    assert all(verify(KEY.vk, r.public, r.proof) for r in asyncio.run(main()))


def test_an_awaited_proof_raises_as_prove_does(prover):
    with pytest.raises(WitnessError):
        asyncio.run(prover.prove_async(BAD))
    with pytest.raises(WitnessError, match="length"):
        asyncio.run(prover.prove_async(GOOD[:-1]))


def test_a_cancelled_task_lets_go_of_the_proof(prover, monkeypatch):
    begun = threading.Event()
    honest = Prover._finish

    def finish(self, work):
        begun.set()
        time.sleep(0.3)
        return honest(self, work)

    monkeypatch.setattr(Prover, "_finish", finish)

    async def main():
        task = asyncio.create_task(prover.prove_async(GOOD))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert prover.prove(GOOD).public  # goes on as before

# SPDX-License-Identifier: Apache-2.0
"""The latent faults of the pinned pools that came before, each as a test by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from fake_cuda import Fake

from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import BudgetExceeded, WaitTimeout

MIB = 1 << 20
Pools = Callable[..., PinnedPool]


def test_growth_past_capacity(fake: Fake, pool: Pools) -> None:
    """Growth reallocated a pinned pointer; ours takes a new block, copies, and returns the old one."""
    p = pool()
    v = PinnedVec(BN254.fr, 10, pool=p)
    rows = np.arange(4 * 70_000, dtype=np.uint64).reshape(-1, 4)
    for start in range(0, len(rows), 7000):
        v.extend(rows[start : start + 7000])
    assert (v.borrow().numpy() == rows).all()
    assert v.capacity >= len(v)
    assert p.stats().out <= p.stats().total
    v.release()
    assert p.stats().out == 0


def test_one_size_for_three_buffers(fake: Fake, pool: Pools) -> None:
    """The pool kept one size for a, b and c; ours has each block remember its own."""
    p = pool(wipe=False)
    sizes = [3 * MIB, 5 * MIB, 7 * MIB]
    blocks = p.checkout_many(sizes)
    assert [b.nbytes for b in blocks] == sizes
    for b in reversed(blocks):
        b.release()
    assert p.stats().free == 15 * MIB
    again = p.checkout_many(sizes)
    assert [b.nbytes for b in again] == sizes
    assert p.stats().total == 15 * MIB
    for b in again:
        b.release()
    assert p.trim() == fake.live_bytes() + 15 * MIB


def test_shrink_order(fake: Fake, pool: Pools) -> None:
    """Shrinking dropped the newest blocks, against its comment; ours drops the oldest idle ones."""
    p = pool(wipe=False)
    blocks = [p.checkout(2 * MIB) for _ in range(4)]
    addresses = [b.ptr for b in blocks]
    for i in (2, 0, 3, 1):  # from oldest to newest
        blocks[i].release()
    p.trim(4 * MIB)
    with p.checkout(2 * MIB) as a, p.checkout(2 * MIB) as b:
        assert [a.ptr, b.ptr] == [addresses[1], addresses[3]]


def test_an_evictor_that_drains_the_warm_pool_without_gaining_budget(fake: Fake, pool: Pools) -> None:
    """Growth that could not succeed emptied the warm pool all the same; ours leaves it warm."""
    p = pool(16 * MIB)
    v = PinnedVec("bytes", 8 * MIB, pool=p)
    v.resize(8 * MIB, 1)
    p.warm(2 * MIB, count=2)
    total, frees = p.stats().total, fake.calls("cuMemHostUnregister")
    with pytest.raises(BudgetExceeded):
        v.ensure(9 * MIB)
    assert p.stats().total == total
    assert fake.calls("cuMemHostUnregister") == frees
    v.truncate(4 * MIB)
    v.release()
    with p.checkout(13 * MIB, timeout=5) as b:  # what is evicted comes back to the budget at once
        assert p.budget.stats().used == p.stats().total == b.nbytes


def test_idle_pinned_bytes_are_seen_by_the_budget(fake: Fake, pool: Pools) -> None:
    """Idle pinned memory was not counted; here the reservation stays with the block until it is unpinned."""
    p = pool(16 * MIB)
    p.checkout(12 * MIB).release()
    p.settle(5)
    assert p.stats().free == p.budget.stats().used == fake.live_bytes() == 12 * MIB
    assert p.budget.try_reserve(5 * MIB, "keys") is None
    r = p.budget.reserve(5 * MIB, "keys", timeout=0)
    assert fake.live_bytes() == 0
    r.release()


def test_lost_wake_up(fake: Fake, pool: Pools) -> None:
    """A release between a waiter's look and its sleep woke nobody; ours counts changes."""
    p = pool(2 * MIB)
    for i in range(300):
        held = p.checkout(2 * MIB)
        got = []
        waiter = threading.Thread(target=lambda: got.append(p.checkout(2 * MIB, timeout=20)))  # noqa: B023
        waiter.start()
        time.sleep((i % 7) * 1e-4)
        held.release()
        waiter.join()
        got.pop().release()


def test_a_wait_ends_when_memory_comes_back_by_any_road(fake: Fake, pool: Pools) -> None:
    budget = MemoryBudget(4 * MIB)
    a, b = PinnedPool(budget, kind="pinned"), PinnedPool(budget, kind="pinned")
    s = fake.stream()
    roads: list[tuple[Callable[[], object], Callable[[object], None]]] = [
        (lambda: budget.reserve(4 * MIB, "x"), lambda r: r.release()),  # type: ignore[attr-defined]
        (lambda: a.checkout(4 * MIB), lambda k: k.release()),  # type: ignore[attr-defined]
        (lambda: b.checkout(4 * MIB), lambda k: k.release()),  # type: ignore[attr-defined]
        (lambda: _flying(a, s), lambda _: s.advance()),
        (lambda: _flying(b, s), lambda _: s.advance()),
    ]
    for hold, give in roads:
        for want in (
            lambda: a.checkout(4 * MIB, timeout=20),
            lambda: budget.reserve(4 * MIB, "y", timeout=20),
        ):
            held = hold()
            got: list[object] = []
            waiter = threading.Thread(target=lambda: got.append(want()))  # noqa: B023
            waiter.start()
            time.sleep(0.01)
            assert not got
            give(held)
            waiter.join()
            got.pop().release()  # type: ignore[attr-defined]
            del held
    a.close()
    b.close()
    assert budget.stats().used == 0


def _flying(p: PinnedPool, s: object) -> None:
    b = p.checkout(4 * MIB)
    b.record_use(s)
    b.release()


def test_a_failing_big_request_that_makes_a_fitting_small_one_fail(fake: Fake, pool: Pools) -> None:
    """A request that could never fit disturbed the others; here it fails at once, alone."""
    p = pool(16 * MIB)
    held = p.checkout(8 * MIB)
    with pytest.raises(BudgetExceeded):
        p.checkout(17 * MIB)
    with pytest.raises(WaitTimeout):
        p.checkout(12 * MIB, timeout=0.01)
    p.checkout(4 * MIB, timeout=0).release()
    with pytest.raises(BudgetExceeded):
        p.checkout_many([MIB, 16 * MIB])
    with pytest.raises(WaitTimeout):
        p.checkout_many([4 * MIB, 4 * MIB, 4 * MIB], timeout=0.01)
    p.checkout(8 * MIB, timeout=0).release()
    held.release()


def test_hold_and_wait(fake: Fake, pool: Pools) -> None:
    """Growth waited while it held a block, and two such vectors waited for each other for ever; ours never waits."""
    p = pool(16 * MIB)
    vectors = [PinnedVec("bytes", 8 * MIB, pool=p) for _ in range(2)]
    for v in vectors:
        v.resize(8 * MIB, 7)
    start = time.monotonic()
    for v in vectors:
        with pytest.raises(BudgetExceeded, match="does not wait"):
            v.push(1)
        assert len(v) == 8 * MIB
        assert (v.borrow().numpy() == 7).all()
    assert time.monotonic() - start < 5
    vectors[0].release()
    vectors[1].truncate(MIB)
    small = vectors[1].into_backing()
    small.release()


def test_growth_overtakes_those_who_wait(fake: Fake, pool: Pools) -> None:
    """Whoever holds a block must be able to finish: growth that fits succeeds while a big request waits."""
    p = pool(16 * MIB)
    v = PinnedVec("bytes", 2 * MIB, pool=p)
    v.resize(2 * MIB, 7)
    cancel = threading.Event()
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            p.checkout(16 * MIB, cancel=cancel)
        except TimeoutError as e:
            failures.append(e)

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not p.budget.stats().waiting:
        time.sleep(0.001)
    v.push(1)
    assert p.budget.try_reserve(1, "x") is None, "but nobody else does"
    with pytest.raises(WaitTimeout):
        p.budget.reserve(1, "x", timeout=0.01)
    cancel.set()
    waiter.join()
    assert "cancelled" in str(failures[0])
    v.release()


def test_waiting_is_first_in_first_out(fake: Fake, pool: Pools) -> None:
    p = pool(8 * MIB)
    held = p.checkout(8 * MIB)
    order: list[int] = []

    def wait(i: int, n: int) -> None:
        with p.checkout(n, timeout=20):
            order.append(i)
            time.sleep(0.002)

    threads = []
    for i, n in enumerate((8 * MIB, 2 * MIB, 8 * MIB, 100, 5 * MIB)):
        threads.append(threading.Thread(target=wait, args=(i, n)))
        threads[-1].start()
        while p.budget.stats().waiting <= i:
            time.sleep(0.001)
    held.release()
    for t in threads:
        t.join()
    assert order[:4] == [0, 1, 2, 3]
    assert sorted(order) == [0, 1, 2, 3, 4]

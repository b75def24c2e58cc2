# SPDX-License-Identifier: Apache-2.0
"""What steady state costs in driver calls (statements T27 to T29; T30 is a benchmark of the reference machine)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_cuda import Fake

from pinzk._core.memory import PinnedPool, PinnedVec
from pinzk.curves import BN254

KIB, MIB = 1 << 10, 1 << 20
Pools = Callable[..., PinnedPool]


@pytest.mark.parametrize("wipe", [False, True])
def test_t27_steady_state_makes_no_driver_call(fake: Fake, pool: Pools, wipe: bool) -> None:
    p = pool(wipe=wipe)
    p.warm(64 * MIB, count=2)
    p.warm(100 * KIB, count=2)
    before = fake.calls()
    for _ in range(200):
        a, b = p.checkout(64 * MIB), p.checkout(100 * KIB)
        a.release()
        b.release()
    with PinnedVec(BN254.fr, 2 * MIB, pool=p) as v:
        v.push(1)
        v.borrow_mut()
    p.settle(5)
    assert fake.calls() == before
    assert p.stats().allocations == 3, "two blocks and a slab"


@pytest.mark.parametrize("wipe", [False, True])
def test_t27_copies_cost_no_allocation(fake: Fake, pool: Pools, wipe: bool) -> None:
    p, s = pool(wipe=wipe), fake.stream(automatic=True)
    p.warm(2 * MIB, count=3)

    def run(n: int) -> None:
        for _ in range(n):
            b = p.checkout(2 * MIB)
            b.record_use(s)
            b.release()
            p.settle(5)

    run(20)
    names = (
        "cuMemHostAlloc",
        "cuMemHostRegister_v2",
        "cuMemFreeHost",
        "cuMemHostUnregister",
        "cuEventCreate",
        "cuEventDestroy_v2",
        "cuCtxPushCurrent_v2",
    )
    before = [fake.calls(n) for n in names]
    run(100)
    assert [fake.calls(n) for n in names] == before


def test_t28_one_event_record_for_each_use_and_none_for_a_release(fake: Fake, pool: Pools) -> None:
    p, streams = pool(), [fake.stream(automatic=True) for _ in range(3)]
    b = p.checkout(2 * MIB)
    before = fake.calls("cuEventRecord")
    for s in streams * 4:
        b.record_use(s)
    assert fake.calls("cuEventRecord") == before + 12
    b.release()
    p.settle(5)
    assert fake.calls("cuEventRecord") == before + 12
    events = fake.live_events()
    for _ in range(1000):  # a block that is used for ever does not gather events
        with p.checkout(2 * MIB) as b:
            for s in streams * 2:
                b.record_use(s)
        p.settle(5)
    assert fake.live_events() <= events + 12


def test_t28_finished_events_of_a_block_in_use_are_taken_back(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream(automatic=True)
    with p.checkout(2 * MIB) as b:
        before = fake.live_events()
        for _ in range(500):
            b.record_use(s)
        assert fake.live_events() <= before + 20


def test_t29_small_requests_come_from_a_slab(fake: Fake, pool: Pools) -> None:
    p = pool()
    p.checkout(200).release()
    before = fake.calls()
    blocks = [p.checkout(200) for _ in range(4000)]
    assert fake.calls() == before
    assert p.stats().total == MIB
    for b in blocks:
        b.release()
    p.settle(5)
    assert p.stats().free == MIB


def test_warm_blocks_are_ready(fake: Fake, pool: Pools) -> None:
    p = pool()
    p.warm(5 * MIB, count=3, threads=2)
    assert p.stats().free == 15 * MIB
    p.warm(5 * MIB, count=3)
    assert p.stats().total == 15 * MIB, "what is warm stays so"
    before = fake.calls()
    held = p.checkout_many([5 * MIB] * 3)
    assert fake.calls() == before
    with pytest.raises(MemoryError, match="1 of 1000 blocks fit"):
        pool(6 * MIB).warm(5 * MIB, count=1000)
    for b in held:
        b.release()

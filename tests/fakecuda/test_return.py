# SPDX-License-Identifier: Apache-2.0
"""Memory that comes back, and faults of the driver at every position (statements T21 to T26, T40, T44)."""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections.abc import Callable

import numpy as np
import pytest
from fake_cuda import Fake

from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import DeviceError, MemoryPlanError, PinningError, WaitTimeout

KIB, MIB = 1 << 10, 1 << 20
Pools = Callable[..., PinnedPool]


def test_t21_trim_gives_everything_back(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream()
    for n in (1, 300, 70 * KIB, 3 * MIB, 5 * MIB):
        with p.checkout(n) as b:
            b.borrow_mut().numpy()[:] = 1
    flying = p.checkout(2 * MIB)
    flying.record_use(s)
    flying.release()
    total = p.stats().total
    assert p.trim() == total - 2 * MIB
    assert fake.live_bytes() == p.stats().total == p.stats().pending == 2 * MIB
    s.advance()
    assert p.trim(0) == 2 * MIB
    assert fake.live_bytes() == p.budget.stats().used == 0


def test_t21_trim_keeps_what_it_is_told_to_and_frees_the_oldest(fake: Fake, pool: Pools) -> None:
    p = pool(wipe=False)
    blocks = [p.checkout(n * MIB) for n in (2, 3, 4)]
    addresses = [b.ptr for b in blocks]
    for i in (1, 0, 2):
        blocks[i].release()
    assert p.trim(6 * MIB) == 3 * MIB
    with p.checkout(2 * MIB) as a, p.checkout(4 * MIB) as b:
        assert [a.ptr, b.ptr] == [addresses[0], addresses[2]]
    assert p.trim(6 * MIB) == 0


def test_t22_deferred_frees_are_bounded_in_host_bytes(fake: Fake, pool: Pools) -> None:
    p, s = pool(16 * MIB), fake.stream()
    for _ in range(8):
        b = p.checkout(2 * MIB)
        b.record_use(s)
        b.release()
    for _ in range(3):
        with pytest.raises(WaitTimeout):
            p.checkout(2 * MIB, timeout=0.01)
    assert p.stats().pending == p.stats().total == fake.live_bytes() == 16 * MIB


def test_t23_a_tight_loop_stays_small(fake: Fake, pool: Pools) -> None:
    p, s = pool(16 * MIB), fake.stream()
    for i in range(500):
        b = p.checkout(2 * MIB, timeout=10)
        b.record_use(s)
        b.release()
        if i % 4 == 3:
            s.advance()
    assert fake.live_bytes() <= 16 * MIB
    assert p.stats().allocations <= 8


def test_t23_completed_events_come_first_then_evictors_then_the_error(fake: Fake, pool: Pools) -> None:
    p, s = pool(4 * MIB), fake.stream()
    asked: list[int] = []
    p.budget.add_evictor(lambda n: asked.append(n) or 0)
    b = p.checkout(4 * MIB)
    b.record_use(s)
    b.release()
    s.advance()
    p.checkout(4 * MIB, timeout=0).release()
    assert asked == [], "looking at events was enough"
    held = p.checkout(4 * MIB)
    with pytest.raises(WaitTimeout):
        p.checkout(MIB, timeout=0)
    assert asked == [MIB]
    held.release()


def scenario(fake: Fake, p: PinnedPool) -> None:
    """Everything that calls the driver, each object released however it ends."""
    s, t = fake.stream(0, automatic=True), fake.stream(1, automatic=True)
    with p.checkout(4 * MIB) as big, p.checkout(100) as small:
        big.record_use(s)
        big.record_use(t, writes=True)
        small.record_use(s)
        assert big.nbytes + small.nbytes
    for b in p.checkout_many([2 * MIB, 100 * KIB, 3 * MIB]):
        b.record_use(t)
        b.release()
    v = PinnedVec(BN254.fr, 1, pool=p)
    for _ in range(4):
        v.extend(np.ones((20_000, 4), np.uint64))
    v.record_use(s)
    v.release()
    with p.register(np.zeros(3 * MIB, np.uint8)) as r:
        r.record_use(s)
    p.settle(10)
    p.trim()


FUNCTIONS = (
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuCtxGetId",
    "cuCtxPushCurrent_v2",
    "cuMemFreeHost",
    "cuMemHostUnregister",
)


@pytest.mark.parametrize("kind", ["pinned", "auto"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_t24_a_fault_at_any_position_leaks_nothing(fake: Fake, name: str, kind: str) -> None:
    events = None
    for nth in range(1, 30):
        before = fake.calls(name)
        p = PinnedPool(MemoryBudget(64 * MIB), kind=kind)
        fake.fail(name, nth)
        with contextlib.suppress(DeviceError, MemoryPlanError):
            scenario(fake, p)
        untouched = fake.calls(name) - before < nth
        fake.fail(name, 0)
        gc.collect()
        p.settle(10)
        p.close()
        s = p.stats()
        assert s.out == s.pending == s.dirty == s.free == 0
        assert p.budget.stats().used == s.quarantined == s.total, (
            "the budget holds what could not be freed, and no more"
        )
        assert fake.live_bytes() <= s.quarantined
        if name.startswith("cuMem"):
            assert fake.live_bytes() == s.quarantined
        fake.forget_ranges()
        if events is not None and name != "cuEventQuery":  # an event whose query failed stays with its block
            assert fake.live_events() <= events + 2
        events = max(events or 0, fake.live_events())
        if untouched:
            return
    raise AssertionError("the scenario calls the function more often than the test knows")


def test_t25_one_array_a_thousand_times(fake: Fake, pool: Pools) -> None:
    p, a = pool(), np.arange(1 << 18, dtype=np.uint8)
    for _ in range(1000):
        b = p.register(a)
        assert (b.kind, b.nbytes, b.ptr) == ("registered", a.nbytes, a.ctypes.data)
        b.release()
    for _ in range(100):
        try:
            with p.register(a):
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        with p.register(a):
            pass
    assert fake.live_bytes() == 0
    assert a[77] == 77, "the user's memory is not wiped"


def test_t25_registered_memory_in_flight_is_unregistered_when_it_is_done(fake: Fake, pool: Pools) -> None:
    p, s, a = pool(), fake.stream(), bytearray(64 * KIB)
    b = p.register(a)
    b.record_use(s)
    b.release()
    assert fake.live_bytes() == 64 * KIB
    with pytest.raises(BufferError):
        a.extend(b"x")
    with pytest.raises(PinningError, match="ALREADY_REGISTERED"):
        p.register(a)
    s.advance()
    p.settle(5)
    assert fake.live_bytes() == 0
    deadline = time.monotonic() + 5
    while True:  # the interpreter lets go of the buffer when it gets to it
        try:
            a.extend(b"x")
            break
        except BufferError:
            assert time.monotonic() < deadline
            time.sleep(0.001)


def test_t25_large_memory_goes_in_segments_and_comes_back_in_reverse(fake: Fake, pool: Pools) -> None:
    p = pool(1 << 33)
    a = np.zeros((5 << 29) + 12_345, np.uint8)[3:]  # untouched pages; not aligned
    before = fake.calls("cuMemHostRegister_v2")
    with p.register(a):
        assert fake.calls("cuMemHostRegister_v2") == before + 3
        assert fake.live_bytes() == a.nbytes
    assert fake.live_bytes() == 0
    for nth in (1, 2, 3):
        fake.fail("cuMemHostRegister_v2", nth, 2)
        with pytest.raises(PinningError):
            p.register(a)
        assert fake.live_bytes() == p.budget.stats().used == 0


def test_t26_refused_page_locking_is_an_error_when_asked_for_by_name(fake: Fake, pool: Pools) -> None:
    p = pool()
    for n in (100, 4 * MIB):
        fake.limit(0)
        with pytest.raises(
            PinningError, match=r"cannot page-lock \d+ bytes: cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY"
        ):
            p.checkout(n)
        assert p.budget.stats().used == p.stats().total == fake.live_bytes()
        fake.limit(2**62)
        with p.checkout(n) as b:
            assert b.kind == "pinned", "an earlier refusal must not be blamed on the next call"


def test_t26_auto_falls_back_per_block_counts_it_and_says_so_once(
    fake: Fake, pool: Pools, caplog: pytest.LogCaptureFixture
) -> None:
    p = pool(kind="auto")
    fake.limit(4 * MIB)
    with (
        caplog.at_level(logging.DEBUG, "pinzk"),
        p.checkout(3 * MIB) as a,
        p.checkout(3 * MIB) as b,
        p.checkout(2 * MIB) as c,
    ):
        assert [x.kind for x in (a, b, c)] == ["pinned", "pageable", "pageable"]
        with p.register(bytearray(2 * MIB)) as r:
            assert r.kind == "pageable"
        v = PinnedVec(BN254.fr, 100_000, pool=p)
        assert v.kind == "pageable"
        v.release()
        assert p.stats().fallbacks == 4
        assert p.stats().by_tag == {"pinned": 3 * MIB, "pageable": p.stats().total - 3 * MIB}
        assert p.budget.stats().by_tag == p.stats().by_tag
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    fake.limit(2**62)
    with p.checkout(9 * MIB) as d:
        assert d.kind == "pinned"


def test_t26_pageable_pools_never_call_the_driver(fake: Fake, pool: Pools) -> None:
    p, before = pool(kind="pageable"), fake.calls()
    for n in (1, 100 * KIB, 9 * MIB):
        with p.checkout(n) as b:
            assert b.kind == "pageable"
    with p.register(bytearray(100)) as r:
        assert r.kind == "pageable"
    p.trim()
    assert fake.calls() == before
    assert p.stats().fallbacks == 0


def test_t40_a_driver_that_is_gone_is_no_error(
    fake: Fake, pool: Pools, capfd: pytest.CaptureFixture[str]
) -> None:
    p = pool()
    p.checkout(100).release()
    p.checkout(4 * MIB).release()
    for name in ("cuMemFreeHost", "cuMemHostUnregister"):
        fake.fail(name, 1, 4, all_later=True)
    p.close()
    assert p.stats().total == p.budget.stats().used == 0
    assert capfd.readouterr() == ("", "")
    fake.forget_ranges()


def test_t44_cumemhostalloc_serves_what_cannot_be_registered(fake: Fake, pool: Pools) -> None:
    fake.fail("cuMemHostRegister_v2", 1, 801, all_later=True)
    p = pool()
    with p.checkout(4 * MIB) as b:
        assert b.kind == "pinned"
        assert not b.borrow().numpy().any(), "the driver's memory is not zero by itself"
    fake.fail("cuMemHostAlloc", 1, 801, all_later=True)
    with pytest.raises(PinningError, match=r"use kind='auto'"):
        p.checkout(8 * MIB)

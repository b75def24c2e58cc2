# SPDX-License-Identifier: Apache-2.0
"""Lifetime and races: a block is reused only after the host saw every use of it complete (statements T1 to T12)."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from fake_cuda import Fake

from pinzk._core.memory import PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import BorrowError, DeviceError, InFlightError, WaitTimeout

MIB = 1 << 20
Pools = Callable[..., PinnedPool]


def test_t01_dropped_references_do_not_free_memory_under_a_copy(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream()
    p.warm(4 * MIB, count=2)
    b = p.checkout(4 * MIB)
    address = b.ptr
    b.record_use(s)
    del b
    gc.collect()
    for _ in range(5):
        with p.checkout(4 * MIB) as other:
            assert other.ptr != address
        p.settle(0) if p.stats().pending == 0 else time.sleep(0.002)
    assert p.stats().pending == 4 * MIB
    s.advance()
    p.settle(5)
    assert p.stats().pending == 0
    assert p.stats().free == 8 * MIB


def test_t02_reuse_is_delayed_by_the_stream_that_was_named(fake: Fake, pool: Pools) -> None:
    p, s, other = pool(4 * MIB), fake.stream(), fake.stream()
    b = p.checkout(4 * MIB)
    b.record_use(s)
    b.release()
    other.advance()
    with pytest.raises(WaitTimeout):
        p.checkout(4 * MIB, timeout=0.02)
    s.advance()
    p.checkout(4 * MIB, timeout=5).release()


def test_t03_no_block_is_handed_out_with_an_unfinished_event(fake: Fake, pool: Pools) -> None:
    p = pool(wipe=False)
    streams = [fake.stream(context=i % 2) for i in range(4)]
    busy: dict[int, int] = {}
    rng = np.random.default_rng(3)
    for step in range(300):
        b = p.checkout(2 * MIB)
        assert busy.get(b.ptr, 0) == 0, f"step {step}"
        k = int(rng.integers(4))
        b.record_use(streams[k])
        busy[b.ptr] = k + 1
        b.release()
        if step % 3 == 0:
            streams[k].advance()
            busy = {a: j for a, j in busy.items() if j != k + 1}
    for s in streams:
        s.advance()


def test_t04_a_block_cannot_come_home_before_its_event_is_recorded(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream()
    b = p.checkout(2 * MIB)
    fake.block("cuEventRecord")
    t = threading.Thread(target=b.record_use, args=(s,))
    t.start()
    fake.wait_blocked("cuEventRecord")
    with pytest.raises(BorrowError):
        b.release()
    assert p.stats().out == 2 * MIB
    fake.block("cuEventRecord", False)
    t.join()
    b.release()
    assert p.stats().pending == 2 * MIB
    s.advance()


def test_t05_completion_on_another_device_frees_nothing(fake: Fake, pool: Pools) -> None:
    p, here, there = pool(), fake.stream(context=0), fake.stream(context=1)
    b = p.checkout(2 * MIB)
    b.record_use(there)
    b.release()
    here.advance()
    with pytest.raises(WaitTimeout):
        p.settle(0.02)
    there.advance()
    p.settle(5)


def test_t05_close_joins_the_thread(fake: Fake, pool: Pools) -> None:
    before = len(os.listdir("/proc/self/task"))
    p = pool()
    p.checkout(2 * MIB).release()
    assert len(os.listdir("/proc/self/task")) == before + 1
    p.close()
    assert len(os.listdir("/proc/self/task")) == before


@pytest.mark.parametrize("code", [700, 999, 400])
def test_t05_a_failed_event_query_quarantines_the_block(fake: Fake, pool: Pools, code: int) -> None:
    p, s = pool(), fake.stream()
    b = p.checkout(2 * MIB)
    address = b.ptr
    b.record_use(s)
    fake.fail("cuEventQuery", 1, code, all_later=True)
    b.release()
    p.settle(5)
    fake.fail("cuEventQuery", 0)
    s.advance()
    assert p.stats().quarantined == 2 * MIB
    with p.checkout(2 * MIB) as other:
        assert other.ptr != address
    assert p.trim() == 2 * MIB
    assert fake.live_bytes() == p.stats().total == 2 * MIB


def test_t06_events_are_kept_by_context(fake: Fake, pool: Pools) -> None:
    p = pool()
    b = p.checkout(2 * MIB)
    for context in (0, 1, 0, 2, 1, 3):  # the fake refuses an event of another context
        s = fake.stream(context, automatic=True)
        b.record_use(s)
        assert not b.in_flight
    b.release()


def test_t07_the_target_of_a_copy_from_the_device_cannot_be_seen_before_it_is_done(
    fake: Fake, pool: Pools
) -> None:
    p, s = pool(), fake.stream()
    b = p.checkout(2 * MIB)
    source = np.full(64, 7, np.uint8)
    s.copy(b.ptr, source.ctypes.data, 64)
    b.record_use(s, writes=True)
    with pytest.raises(InFlightError):
        b.borrow_mut()
    with pytest.raises(InFlightError):
        b.borrow()
    assert b.in_flight
    s.advance()
    assert not b.in_flight
    view = b.borrow().numpy()
    assert view[:64].tolist() == [7] * 64
    del view
    b.release()


def test_t07_a_target_dropped_in_flight_is_not_reused(fake: Fake, pool: Pools) -> None:
    p, s = pool(2 * MIB), fake.stream()
    source = np.full(64, 7, np.uint8)
    b = p.checkout(2 * MIB)
    s.copy(b.ptr, source.ctypes.data, 64)
    b.record_use(s, writes=True)
    del b
    with pytest.raises(WaitTimeout):
        p.checkout(2 * MIB, timeout=0.02)
    s.advance()
    b = p.checkout(2 * MIB, timeout=5)
    assert not b.borrow().numpy()[:64].any(), "what the copy wrote after the release must be wiped"
    gc.collect()
    b.release()


def test_t08_the_source_of_a_copy_may_be_read_and_not_written(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream()
    v = PinnedVec(BN254.fr, 8, pool=p)
    v.push(1)
    v.record_use(s)
    assert BN254.fr.decode(v.borrow().numpy()) == [1]
    for change in (
        v.borrow_mut,
        lambda: v.push(2),
        lambda: v.extend(np.zeros((1, 4), np.uint64)),
        lambda: v.resize(0),
        lambda: v.truncate(0),
        lambda: v.ensure(1000),
        lambda: v.spare_mut(1),
    ):
        with pytest.raises(InFlightError):
            change()
    assert len(v) == 1
    later = threading.Timer(0.05, s.advance)
    later.start()
    lease = v.borrow_mut(wait=True)
    later.join()
    lease.numpy()[:] = 0
    del lease
    v.release()


def test_t08_move_and_release_in_flight_are_fine_and_the_events_travel(fake: Fake, pool: Pools) -> None:
    p, s = pool(1 * MIB), fake.stream()
    v = PinnedVec("bytes", 1 * MIB, pool=p)
    v.record_use(s)
    b = v.into_backing()
    w = b.into_vec("bytes")
    assert w.in_flight
    w.release()
    with pytest.raises(WaitTimeout):
        p.checkout(1 * MIB, timeout=0.02)
    s.advance()
    p.checkout(1 * MIB, timeout=5).release()


VIEWS: dict[str, Callable[..., object]] = {
    "memoryview": lambda x: memoryview(x),
    "np.frombuffer": lambda x: np.frombuffer(x, np.uint8),
    "np.asarray": lambda x: np.asarray(x),
    "numpy": lambda x: x.numpy(),
    "slice": lambda x: x.numpy()[3:7],
    "view": lambda x: x.numpy().view(np.uint64),
    "from_dlpack": lambda x: np.from_dlpack(x),
    "ctypes": lambda x: (ctypes.c_char * 64).from_buffer(x),
    "PickleBuffer": lambda x: pickle.PickleBuffer(x),
    "cast": lambda x: memoryview(x).cast("Q").toreadonly(),
    "np.ndarray": lambda x: np.ndarray((64,), np.uint8, buffer=x),
    "np.ndarray of memoryview": lambda x: np.ndarray((64,), np.uint8, buffer=memoryview(x)),
}


@pytest.mark.parametrize("route", VIEWS)
def test_t09_every_view_keeps_the_memory(pool: Pools, route: str) -> None:
    p = pool()
    b = p.checkout(4096)
    lease = b.borrow_mut()
    view = VIEWS[route](lease)
    del lease
    gc.collect()
    for refused in (b.release, lambda: b.into_vec("bytes"), b.borrow, b.borrow_mut):
        with pytest.raises(BufferError):
            refused()
    cycle = [view]
    cycle.append(cycle)
    del view
    with pytest.raises(BufferError):
        b.release()
    del cycle
    gc.collect()
    b.release()


def test_t09_a_view_outlives_its_vector(pool: Pools) -> None:
    p = pool()
    v = PinnedVec("bytes", 4096, pool=p)
    v.extend(b"abc")
    view = v.borrow().numpy()
    del v
    gc.collect()
    assert p.stats().out > 0
    assert view.tobytes() == b"abc"
    del view
    assert p.stats().out == 0


def test_t09_a_read_only_lease_cannot_be_made_writeable(pool: Pools) -> None:
    p = pool()
    with p.checkout(4096) as b:
        view = b.borrow().numpy()
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
        with pytest.raises((BufferError, TypeError)):
            (ctypes.c_char * 64).from_buffer(b.borrow())  # type: ignore[arg-type]
        del view
        gc.collect()


def test_t10_registering_and_releasing_one_array_from_many_threads(fake: Fake, pool: Pools) -> None:
    p, a = pool(), np.zeros(1 << 16, np.uint8)
    done, refused = [0] * 8, [0] * 8

    def work(i: int) -> None:
        for _ in range(200):
            try:
                with p.register(a):
                    done[i] += 1
            except MemoryError:  # another thread holds it
                refused[i] += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sum(done) + sum(refused) == 1600
    assert sum(done) > 0
    assert p.stats().quarantined == 0, "the driver saw an address unregistered twice"
    assert fake.live_bytes() == 0


def test_t11_t12_a_capture_is_refused_by_name_and_the_block_never_reused(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream()
    b = p.checkout(2 * MIB)
    s.capture(True)
    queries = fake.calls("cuEventQuery")
    with pytest.raises(DeviceError, match="captured into a CUDA graph") as e:
        b.record_use(s)
    assert e.value.name == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    p.checkout(4096).release()
    b.release()
    p.settle(5)
    assert fake.calls("cuEventQuery") == queries
    s.capture(False)
    s.advance()
    assert p.stats().quarantined == 2 * MIB
    with p.checkout(2 * MIB) as other:
        assert other.nbytes == 2 * MIB

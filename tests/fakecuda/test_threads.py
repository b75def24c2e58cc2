# SPDX-License-Identifier: Apache-2.0
"""Locks, the GIL, the garbage collector (statements T31 to T36, T20, T17), and a storm of threads."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_cuda import Fake

from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import BN254

MIB = 1 << 20
Pools = Callable[..., PinnedPool]
SECONDS = float(os.environ.get("PINZK_STORM_SECONDS", "3"))


def test_t31_no_callback_from_the_driver_into_python(fake: Fake, pool: Pools) -> None:
    p, s = pool(), fake.stream(automatic=True)
    with p.checkout(2 * MIB) as b:
        b.record_use(s)
    p.settle(5)
    assert not [name for name in fake.called() if "HostFunc" in name or "Callback" in name]


def record(p: PinnedPool, s: object) -> None:
    with p.checkout(100) as b:
        b.record_use(s)


def register(p: PinnedPool, s: object) -> None:
    p.register(bytearray(100)).release()


def settle(p: PinnedPool, s: object) -> None:
    record(p, s)
    p.settle(20)


CALLERS: dict[str, Callable[[PinnedPool, object], object]] = {
    "cuMemHostAlloc": lambda p, s: p.checkout(MIB).release(),
    "cuMemHostRegister_v2": lambda p, s: p.checkout(4 * MIB).release(),
    "cuMemHostUnregister": register,
    "cuMemFreeHost": lambda p, s: (p.checkout(MIB).release(), p.trim()),
    "cuEventCreate": record,
    "cuEventRecord": record,
    "cuEventQuery": settle,
    "cuStreamGetCtx": record,
    "cuStreamIsCapturing": record,
    "cuCtxGetId": record,
    "cuCtxPushCurrent_v2": lambda p, s: p.checkout(MIB).release(),
}


@pytest.mark.parametrize("name", CALLERS)
def test_t32_t33_a_thread_inside_the_driver_does_not_stop_python(fake: Fake, pool: Pools, name: str) -> None:
    p = pool()
    s = fake.stream(context=3, automatic=True)  # no event of this context is kept from another test
    fake.block(name)
    inside = threading.Thread(target=CALLERS[name], args=(p, s))
    inside.start()
    fake.wait_blocked(name)
    ticks = 0
    end = time.monotonic() + 0.05
    beside = threading.Thread(target=lambda: p.checkout(0).release())
    beside.start()  # nor another user of the pool that needs nothing of the driver
    beside.join()
    while time.monotonic() < end:
        ticks += 1
        p.stats()
        time.sleep(0)
    assert ticks > 10
    fake.block(name, False)
    inside.join()


@pytest.fixture
def eager_gc() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1)
    yield
    gc.set_threshold(*before)


def garbage(p: PinnedPool) -> None:
    """A vector, its lease and its pool in a cycle."""
    v = PinnedVec(BN254.fr, 5, pool=p)
    v.push(3)
    cycle: list[object] = [v, v.borrow(), v.borrow().numpy(), p]
    cycle.append(cycle)


def test_t34_cyclic_garbage_in_the_middle_of_everything(fake: Fake, pool: Pools, eager_gc: None) -> None:
    p, s = pool(64 * MIB), fake.stream(automatic=True)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(40):
                garbage(p)
                v = PinnedVec(BN254.fr, 1, pool=p)
                v.extend(np.ones((3000, 4), np.uint64))
                v.record_use(s)
                garbage(p)
                v.release()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    assert not errors
    assert p.stats().out == 0


def test_t35_t36_a_vector_in_a_cycle_with_its_pool_is_collected_cleanly(
    fake: Fake, capfd: pytest.CaptureFixture[str]
) -> None:
    class Holder:
        def __init__(self, budget: MemoryBudget, wipe: bool) -> None:
            self.me = self
            self.pool = PinnedPool(budget, kind="pinned", wipe=wipe)
            self.vec = PinnedVec(BN254.fr, 100_000, pool=self.pool)
            self.vec.push(1)
            self.lease = self.vec.borrow()
            budget.add_evictor(lambda n: 0 * len(self.vec))

        def __del__(self) -> None:
            assert BN254.fr.decode(self.lease.numpy()) == [1]

    for wipe in (True, False):
        Holder(MemoryBudget(64 * MIB), wipe)
    gc.collect()
    deadline = time.monotonic() + 10
    while fake.live_bytes():  # freed by the threads of the pools
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert capfd.readouterr() == ("", "")


def test_t20_counters_add_up_in_any_interleaving(fake: Fake, pool: Pools) -> None:
    p, s = pool(32 * MIB), fake.stream()
    stop = threading.Event()
    seen: list[int] = []

    def watch() -> None:
        while not stop.is_set():
            x = p.stats()  # asserts that the states add up to the total
            assert x.total <= p.budget.total
            seen.append(x.total)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for i in range(300):
        a, b = p.checkout_many([2 * MIB, 3 * MIB], timeout=20)
        a.record_use(s)
        if i % 2:
            s.advance()
        a.release()
        b.release()
        s.advance()
        if i % 10 == 0:
            p.trim()
    stop.set()
    watcher.join()
    assert seen
    p.settle(5)
    assert p.stats().total == fake.live_bytes() == p.budget.stats().used


def test_a_storm_of_threads(fake: Fake, pool: Pools) -> None:
    """Checkout, write, copy, release, trim, budget changes: no lost wake-up, no double hand-out, no deadlock."""
    p = pool(48 * MIB)
    streams = [fake.stream(context=i % 2) for i in range(4)]
    end = time.monotonic() + SECONDS
    errors: list[BaseException] = []
    owned: dict[int, int] = {}
    lock = threading.Lock()
    counts = [0] * 8

    def own(address: int, me: int) -> None:
        with lock:
            assert owned.setdefault(address, me) == me, "one block has two owners"

    def disown(address: int) -> None:
        with lock:
            del owned[address]

    def work(me: int) -> None:
        rng = random.Random(me)
        try:
            while time.monotonic() < end:
                counts[me] += 1
                what = rng.random()
                if what < 0.6:
                    b = p.checkout(rng.choice((200, 5000, 2 * MIB, 3 * MIB, 9 * MIB)), timeout=60)
                    own(b.ptr, me)
                    view = b.borrow_mut().numpy()
                    assert not view[:64].any(), "handed out dirty"
                    view[:64] = me + 1
                    if rng.random() < 0.5:
                        b.record_use(streams[me % 4])
                    assert (view[:64] == me + 1).all(), "somebody else wrote"
                    del view
                    disown(b.ptr)
                    if rng.random() < 0.5:
                        b.release()
                    del b
                elif what < 0.7:
                    for b in p.checkout_many([2 * MIB, 100, 2 * MIB], timeout=60):
                        b.release()
                elif what < 0.8:
                    v = PinnedVec("bytes", 10, pool=p)
                    try:
                        for _ in range(6):
                            v.extend(bytes([me]) * 3000 * len(counts))
                    except MemoryError:
                        pass
                    assert (v.borrow().numpy() == me).all()
                elif what < 0.85:
                    p.trim(rng.choice((0, 4 * MIB)))
                elif what < 0.95:
                    p.budget.reserve(rng.choice((1, MIB, 30 * MIB)), "keys", timeout=60).release()
                else:
                    streams[rng.randrange(4)].advance()
        except BaseException as e:
            errors.append(e)

    def clock() -> None:
        while any(t.is_alive() for t in threads):
            for s in streams:
                s.advance()
            time.sleep(0.002)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    clock()
    for t in threads:
        t.join()
    assert not errors, errors[0]
    assert min(counts) > 5
    for s in streams:
        s.advance()
    p.settle(10)
    assert p.stats().out == 0
    assert p.budget.stats().waiting == 0
    assert p.stats().total == p.budget.stats().used == fake.live_bytes()


@pytest.mark.parametrize("call", ["borrow", "borrow_mut", "into_backing", "spare_mut"])
@pytest.mark.parametrize("of", ["vector", "block"])
def test_t34_a_finalizer_that_releases_what_is_just_being_borrowed(
    fake: Fake, pool: Pools, call: str, of: str
) -> None:
    """The collector may run inside any allocation, and a finalizer may release the very object."""
    p = pool()

    class Finalizer:
        def __init__(self, owner: Any) -> None:
            self.owner, self.me = owner, self

        def __del__(self) -> None:
            with contextlib.suppress(BufferError, ValueError):
                self.owner.release()

    for threshold in range(1, 12):
        owner: Any = PinnedVec("bytes", 100, pool=p) if of == "vector" else p.checkout(100)
        function = getattr(owner, call, None)
        if function is None:
            owner.release()
            continue
        arguments = (1,) if call == "spare_mut" else ()
        before = gc.get_threshold()
        gc.collect()
        Finalizer(owner)
        gc.set_threshold(threshold)
        try:
            result = function(*arguments)
        except (BufferError, ValueError):
            result = None
        gc.set_threshold(*before)
        if result is None:
            assert p.stats().out == 0
        else:
            assert p.stats().out > 0, "what was handed out is there"
        gc.collect()
        del result
        with contextlib.suppress(ValueError):
            owner.release()
        assert p.stats().out == 0

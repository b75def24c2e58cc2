# SPDX-License-Identifier: Apache-2.0
"""A secret written to pinned memory is nowhere in it once its owner is gone and the pool has settled."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest
from fake_cuda import Fake

from pinzk._core.memory import PinnedPool, PinnedVec
from pinzk.curves import BN254
from pinzk.errors import BudgetExceeded, WaitTimeout

MIB = 1 << 20
SECRET = bytes(range(100, 132)) * 4
Pools = Callable[..., PinnedPool]


def rows() -> np.ndarray:
    return np.frombuffer(SECRET, np.uint64).reshape(-1, 4)


def by_backing(p: PinnedPool, fake: Fake) -> None:
    with p.checkout(3 * MIB) as b:
        view = b.borrow_mut().numpy()
        view[-len(SECRET) :] = np.frombuffer(SECRET, np.uint8)
        del view


def by_push(p: PinnedPool, fake: Fake) -> None:
    v = PinnedVec("bytes", pool=p)
    for x in SECRET:
        v.push(x)
    v.release()


def by_growth(p: PinnedPool, fake: Fake) -> None:
    v = PinnedVec(BN254.fr, pool=p)
    for _ in range(12):
        v.extend(rows())
        v.ensure(2 * v.capacity)
    v.truncate(1)
    v.release()


def by_spare(p: PinnedPool, fake: Fake) -> None:
    v = PinnedVec(BN254.fr, 100, pool=p)
    v.spare_mut(len(rows())).numpy()[:] = rows()
    v.truncate(0)
    v.release()


def by_fill(p: PinnedPool, fake: Fake) -> None:
    v = PinnedVec(BN254.fr, 100, pool=p)
    v.extend(rows())
    v.resize(1)
    v.into_backing().into_vec("bytes").release()


def by_copy_from_the_device(p: PinnedPool, fake: Fake) -> None:
    s = fake.stream()
    b = p.checkout(2 * MIB)
    source = np.frombuffer(SECRET, np.uint8).copy()
    s.copy(b.ptr + 12_345, source.ctypes.data, len(SECRET))
    b.record_use(s, writes=True)
    b.release()
    s.advance()


def by_garbage(p: PinnedPool, fake: Fake) -> None:
    v = PinnedVec("bytes", pool=p)
    v.extend(SECRET)
    cycle = [v, v.borrow()]
    cycle.append(cycle)


def by_error(p: PinnedPool, fake: Fake) -> None:
    with pytest.raises(ZeroDivisionError), PinnedVec("bytes", 1000, pool=p) as v:
        v.extend(SECRET)
        raise ZeroDivisionError
    v = PinnedVec("bytes", pool=p)
    v.extend(SECRET)
    with pytest.raises(BudgetExceeded):
        v.ensure(p.budget.total + 1)
    fake.fail("cuMemHostRegister_v2", 1, 2)
    fake.fail("cuMemHostAlloc", 1, 2)
    with pytest.raises(MemoryError):
        v.ensure(30 * MIB)
    v.release()


WAYS = [by_backing, by_push, by_growth, by_spare, by_fill, by_copy_from_the_device, by_garbage, by_error]


@pytest.mark.parametrize("wipe", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_gone_after_settle(
    fake: Fake, pool: Pools, way: Callable[[PinnedPool, Fake], None], wipe: bool
) -> None:
    p = pool(64 * MIB, wipe=wipe)
    way(p, fake)
    gc.collect()
    p.settle(10)
    assert p.stats().out == 0
    assert fake.find(SECRET[:32]) is not wipe


@pytest.mark.parametrize("way", WAYS)
def test_no_block_is_handed_out_with_a_secret_before_it_settles(
    fake: Fake, pool: Pools, way: Callable[[PinnedPool, Fake], None]
) -> None:
    p = pool(64 * MIB)
    for _ in range(5):
        way(p, fake)
        gc.collect()
        held = []
        while True:
            for n in (1, 300, 600, 1500, 3000, 6000, 2 * MIB, 3 * MIB):
                try:
                    held.append(p.checkout(n, timeout=0))
                except WaitTimeout:
                    break
            else:
                if len(held) < 60:
                    continue
            break
        for b in held:
            assert SECRET[:32] not in b.borrow().numpy().tobytes()
        for b in held:
            b.release()
        del b
        gc.collect()


def test_spare_capacity_never_shows_the_last_owners_bytes(fake: Fake, pool: Pools) -> None:
    for wipe in (True, False):
        p = pool(wipe=wipe)
        v = PinnedVec("bytes", 100_000, pool=p)
        v.extend(b"\xee" * 100_000)
        v.release()
        w = PinnedVec("bytes", 100_000, pool=p)
        w.extend(b"\x11" * 10)
        spare = w.spare_mut(5000).numpy()
        assert not spare.any()
        spare[:10] = 0x22
        w.commit(20)
        del spare
        assert w.borrow().numpy().tolist() == [0x11] * 10 + [0x22] * 10 + [0] * 10
        w.resize(90_000)
        assert not w.borrow().numpy()[30:].any()
        w.truncate(15)
        w.resize(40)
        assert not w.borrow().numpy()[15:].any()
        w.release()


def test_release_does_not_wait_for_the_wiping(fake: Fake, pool: Pools) -> None:
    p = pool()
    b = p.checkout(256 * MIB)
    b.borrow_mut().numpy()[:] = 1
    t = threading.Thread(target=b.release)
    t.start()
    t.join(0.05)
    assert not t.is_alive()
    with p.checkout(256 * MIB) as again:
        assert not again.borrow().numpy().any()

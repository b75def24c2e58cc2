# SPDX-License-Identifier: Apache-2.0
"""Hypothesis state machines: budget, pool and vector, each against a plain model (T17, T20, the contract)."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
from fake_cuda import FAKE
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from pinzk._core.memory import MemoryBudget, PinnedBacking, PinnedPool, PinnedVec, Reservation
from pinzk.curves import BN254
from pinzk.errors import (
    BorrowError,
    BudgetExceeded,
    InFlightError,
    UseAfterMove,
    UseAfterRelease,
    WaitTimeout,
)

STEPS = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
KIB, MIB = 1 << 10, 1 << 20


class BudgetMachine(RuleBasedStateMachine):
    """Reservations against a dictionary; an evictor holds what it was given until it is asked."""

    reservations = Bundle("reservations")
    TOTAL = 1000

    def __init__(self) -> None:
        super().__init__()
        self.budget = MemoryBudget(self.TOTAL)
        self.held: dict[int, tuple[Reservation, str, int]] = {}
        self.peak = 0
        self.cache: list[Reservation] = []
        self.budget.add_evictor(self.evict)

    def evict(self, n: int) -> int:
        freed = 0
        while self.cache and freed < n:
            freed += self.cache[0].nbytes
            self.cache.pop(0).release()
        return 10**9  # a lie: only what came back counts

    @property
    def used(self) -> int:
        return sum(n for _, _, n in self.held.values()) + sum(r.nbytes for r in self.cache)

    def note(self, r: Reservation, tag: str, n: int) -> Reservation:
        assert (r.nbytes, r.tag) == (n, tag)
        self.held[id(r)] = (r, tag, n)
        self.peak = max(self.peak, self.used)
        return r

    @rule(target=reservations, n=st.integers(0, 1100), tag=st.sampled_from("xyz"), may_try=st.booleans())
    def reserve(self, n: int, tag: str, may_try: bool) -> Any:
        mine = sum(k for _, _, k in self.held.values())
        fits_now = self.used + n <= self.TOTAL
        try:
            r = self.budget.try_reserve(n, tag) if may_try else self.budget.reserve(n, tag, timeout=0)
        except BudgetExceeded:
            assert n > self.TOTAL
            return multiple()
        except WaitTimeout:
            assert not may_try
            assert mine + n > self.TOTAL
            return multiple()
        assert n <= self.TOTAL
        if r is None:
            assert may_try
            assert not fits_now
            return multiple()
        return self.note(r, tag, n)

    @rule(n=st.integers(1, 300))
    def fill_the_cache(self, n: int) -> None:
        r = self.budget.try_reserve(n, "cache")
        if r is not None:
            self.cache.append(r)
            self.peak = max(self.peak, self.used)

    @rule(r=consumes(reservations))
    def release(self, r: Reservation) -> None:
        del self.held[id(r)]
        r.release()
        for again in (r.release, lambda: r.split(0), lambda: r.release(0)):
            try:
                again()
            except UseAfterRelease:
                continue
            raise AssertionError("used after release")

    @rule(r=reservations, n=st.integers(0, 1100))
    def release_some(self, r: Reservation, n: int) -> None:
        _, tag, held = self.held[id(r)]
        try:
            r.release(n)
        except ValueError:
            assert n > held
            return
        self.held[id(r)] = (r, tag, held - n)

    @rule(target=reservations, r=reservations, n=st.integers(0, 600))
    def split(self, r: Reservation, n: int) -> Any:
        _, tag, held = self.held[id(r)]
        try:
            other = r.split(n)
        except ValueError:
            assert n > held
            return multiple()
        self.held[id(r)] = (r, tag, held - n)
        return self.note(other, tag, n)

    @invariant()
    def figures_agree(self) -> None:
        s = self.budget.stats()
        assert (s.total, s.used, s.free, s.waiting) == (self.TOTAL, self.used, self.TOTAL - self.used, 0)
        assert s.peak == self.peak
        tags = {t: sum(n for _, tag, n in self.held.values() if tag == t) for t in "xyz"}
        tags["cache"] = sum(r.nbytes for r in self.cache)
        assert s.by_tag == {t: n for t, n in tags.items() if n}

    def teardown(self) -> None:
        self.held.clear()
        self.cache.clear()
        gc.collect()


class PoolMachine(RuleBasedStateMachine):
    """Blocks against a dictionary of owners and clocks of streams."""

    blocks = Bundle("blocks")
    WIPE = True
    TOTAL = 12 * MIB
    SLABS = 4 * MIB  # one for each of the small sizes below may be held by a block of a few bytes

    def __init__(self) -> None:
        super().__init__()
        FAKE.reset()
        FAKE.forget_ranges()
        self.pool = PinnedPool(MemoryBudget(self.TOTAL), kind="pinned", wipe=self.WIPE)
        self.streams = [FAKE.stream(context=i % 2) for i in range(3)]
        self.owned: dict[int, tuple[PinnedBacking, set[int]]] = {}
        self.flying: list[tuple[int, int, set[int]]] = []  # address, bytes, streams of released blocks

    def note(self, b: PinnedBacking) -> PinnedBacking:
        start, end = b.ptr, b.ptr + b.nbytes
        for other, _ in self.owned.values():
            assert end <= other.ptr or other.ptr + other.nbytes <= start, "two owners of the same bytes"
        for address, nbytes, _ in self.flying:
            assert end <= address or address + nbytes <= start, "handed out under a copy"
        if self.WIPE:
            assert not b.borrow().numpy()[:: max(1, b.nbytes // 5000)].any(), "handed out dirty"
        self.owned[id(b)] = (b, set())
        return b

    @property
    def bound(self) -> int:
        """Bytes that nobody can get now: owned or under a copy."""
        return sum(b.nbytes for b, _ in self.owned.values()) + sum(n for _, n, _ in self.flying)

    @rule(target=blocks, n=st.sampled_from((1, 300, 4096, 100 * KIB, MIB, 2 * MIB + 1, 5 * MIB)))
    def checkout(self, n: int) -> Any:
        try:
            b = self.pool.checkout(n, timeout=0)
        except WaitTimeout:
            assert 9 * n // 8 + self.bound + self.SLABS > self.TOTAL, "a request that fits was refused"
            return multiple()
        assert n <= b.nbytes
        return self.note(b)

    @rule(target=blocks, sizes=st.lists(st.sampled_from((100, 3 * MIB, 4 * MIB)), max_size=3))
    def checkout_many(self, sizes: list[int]) -> Any:
        before = len(self.pool.outstanding())
        try:
            found = self.pool.checkout_many(sizes, timeout=0)
        except WaitTimeout:
            assert len(self.pool.outstanding()) == before, "all or nothing"
            return multiple()
        except BudgetExceeded:
            assert sum(sizes) > self.TOTAL
            return multiple()
        return multiple(*(self.note(b) for b in found))

    @rule(b=blocks)
    def write(self, b: PinnedBacking) -> None:
        try:
            b.borrow_mut().numpy()[:: max(1, b.nbytes // 100)] = 0xAB
        except InFlightError:
            assert self.owned[id(b)][1]

    @rule(b=blocks, i=st.integers(0, 2), writes=st.booleans())
    def record_use(self, b: PinnedBacking, i: int, writes: bool) -> None:
        b.record_use(self.streams[i], writes=writes)
        self.owned[id(b)][1].add(i)

    @rule(i=st.integers(0, 2))
    def advance(self, i: int) -> None:
        self.streams[i].advance()
        for _, uses in self.owned.values():
            uses.discard(i)
        for _, _, uses in self.flying:
            uses.discard(i)
        self.flying = [f for f in self.flying if f[2]]

    @rule(b=consumes(blocks), how=st.sampled_from(("release", "with", "drop")))
    def release(self, b: PinnedBacking, how: str) -> None:
        _, uses = self.owned.pop(id(b))
        if uses:
            self.flying.append((b.ptr, b.nbytes, uses))
        if how == "release":
            b.release()
        elif how == "with":
            with b:
                pass
        else:
            b.into_vec("bytes")  # nobody holds the vector: the block is dropped
        b.__exit__()

    @rule(b=blocks)
    def in_flight(self, b: PinnedBacking) -> None:
        assert b.in_flight == bool(self.owned[id(b)][1])

    @rule(target=blocks, b=consumes(blocks))
    def move(self, b: PinnedBacking) -> PinnedBacking:
        _, uses = self.owned.pop(id(b))
        to = b.into_vec("bytes").into_backing()
        try:
            b.release()
        except UseAfterMove:
            pass
        else:
            raise AssertionError("used after move")
        self.owned[id(to)] = (to, uses)
        return to

    @rule(keep=st.sampled_from((0, 2 * MIB, 6 * MIB)))
    def trim(self, keep: int) -> None:
        if not self.flying:
            self.pool.settle(10)
        before = self.pool.stats()  # what is wiped meanwhile becomes free behind the trim
        self.pool.trim(keep)
        assert self.pool.stats().free <= max(keep, self.SLABS) + before.dirty + before.pending

    @precondition(lambda self: not self.flying)
    @rule()
    def settle(self) -> None:
        gc.collect()
        self.pool.settle(10)
        s = self.pool.stats()
        assert (s.pending, s.dirty) == (0, 0)
        if self.WIPE and not self.owned:
            assert not FAKE.find(b"\xab")

    @invariant()
    def books_agree(self) -> None:
        gc.collect(0)
        s = self.pool.stats()
        assert s.free + s.out + s.pending + s.dirty + s.quarantined == s.total
        assert s.quarantined == 0
        assert s.total == self.pool.budget.stats().used == FAKE.live_bytes()
        assert (
            s.out
            == sum(o.nbytes for o in self.pool.outstanding())
            == sum(b.nbytes for b, _ in self.owned.values())
        )
        assert s.pending >= sum(n for _, n, _ in self.flying)

    def teardown(self) -> None:
        FAKE.reset()
        for b, _ in self.owned.values():
            b.release()
        self.pool.settle(10)
        self.pool.close()
        assert self.pool.stats().total == FAKE.live_bytes() == 0


class PoolMachineWithoutWiping(PoolMachine):
    """The same without wiping."""

    WIPE = False


class VecMachine(RuleBasedStateMachine):
    """One vector against a list; views that stay alive; copies in flight."""

    def __init__(self) -> None:
        super().__init__()
        FAKE.reset()
        FAKE.forget_ranges()
        self.pool = PinnedPool(MemoryBudget(8 * MIB), kind="pinned")
        self.stream = FAKE.stream()
        self.vec: PinnedVec | PinnedBacking = PinnedVec(BN254.fr, pool=self.pool)
        self.model: list[int] = []
        self.readers: list[np.ndarray] = []
        self.writer: np.ndarray | None = None
        self.open = 0
        self.flying = False

    @property
    def borrowed(self) -> bool:
        return bool(self.readers) or self.writer is not None

    def change(self, f: Any, then: Any) -> None:
        """Run a change of the vector, and of the model if it is allowed."""
        before = (len(self.vec), self.vec.capacity)  # type: ignore[arg-type,union-attr]
        try:
            f()
        except InFlightError:
            assert self.flying
            assert not self.borrowed
        except BorrowError:
            assert self.borrowed
        except BudgetExceeded:
            assert not self.borrowed
            assert (len(self.vec), self.vec.capacity) == before  # type: ignore[arg-type,union-attr]
        else:
            assert not self.borrowed
            assert not self.flying
            self.open = 0
            then()

    @rule(x=st.integers(0, 10**30))
    def push(self, x: int) -> None:
        self.change(lambda: self.vec.push(x), lambda: self.model.append(x))  # type: ignore[union-attr]

    @rule(xs=st.lists(st.integers(0, 100), max_size=20), times=st.sampled_from((1, 50, 700)))
    def extend(self, xs: list[int], times: int) -> None:
        rows = BN254.fr.encode(xs * times)
        self.change(lambda: self.vec.extend(rows), lambda: self.model.extend(xs * times))  # type: ignore[union-attr]

    @rule(n=st.sampled_from((0, 1, 5, 100, 3000, 9000, 70_000)), fill=st.sampled_from((0, 3)))
    def resize(self, n: int, fill: int) -> None:
        def then() -> None:
            self.model = (self.model + [fill] * (n - len(self.model)))[:n]

        self.change(lambda: self.vec.resize(n, fill), then)  # type: ignore[union-attr]

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        n = int(len(self.model) * part)
        self.change(lambda: self.vec.truncate(n), lambda: self.model.__delitem__(slice(n, None)))  # type: ignore[union-attr]

    @rule(n=st.sampled_from((1, 1000, 20_000, 200_000)))
    def ensure(self, n: int) -> None:
        self.change(lambda: self.vec.ensure(n), lambda: None)  # type: ignore[union-attr]

    @rule(n=st.sampled_from((0, 1, 10, 900)), k=st.sampled_from((0, 1, 10, 901)))
    def spare(self, n: int, k: int) -> None:
        lease: list[Any] = []
        done: list[bool] = []
        self.change(lambda: lease.append(self.vec.spare_mut(n)), lambda: done.append(True))  # type: ignore[union-attr]
        if not done:
            return
        view = lease.pop().numpy()
        assert view.shape == (n, 4)
        assert not view.any()
        view[:] = BN254.fr.encode(range(n)) if n else 0
        try:
            self.vec.commit(k)  # type: ignore[union-attr]
            assert k <= n
            self.model.extend(range(k))
        except ValueError:
            assert k > n

    @rule()
    def borrow(self) -> None:
        try:
            self.readers.append(self.vec.borrow().numpy())
            assert self.writer is None
        except BorrowError:
            assert self.writer is not None

    @rule()
    def borrow_mut(self) -> None:
        try:
            self.writer = self.vec.borrow_mut().numpy()
            assert not self.readers
            assert not self.flying
        except InFlightError:
            assert self.flying
        except BorrowError:
            assert self.borrowed

    @precondition(lambda self: self.writer is not None and len(self.writer) > 0)
    @rule(i=st.integers(0, 10**6), x=st.integers(0, 5))
    def write(self, i: int, x: int) -> None:
        assert self.writer is not None
        i %= len(self.writer)
        self.writer[i] = BN254.fr.encode([x])[0]
        self.model[i] = x

    @rule()
    def drop_views(self) -> None:
        self.readers.clear()
        self.writer = None

    @rule()
    def copy(self) -> None:
        if self.vec.ptr:
            self.vec.record_use(self.stream)
            self.flying = True

    @rule()
    def copy_done(self) -> None:
        self.stream.advance()
        self.flying = False

    @rule()
    def through_a_backing(self) -> None:
        try:
            moved = self.vec.into_backing()  # type: ignore[union-attr]
        except BorrowError:
            assert self.borrowed
            return
        assert not self.borrowed
        try:
            len(self.vec)  # type: ignore[arg-type]
        except UseAfterMove:
            pass
        else:
            raise AssertionError("used after move")
        self.vec = moved.into_vec(BN254.fr)
        self.model, self.open = [], 0

    @rule()
    def drop(self) -> None:
        try:
            self.vec.release()
            assert not self.borrowed
        except BorrowError:
            assert self.borrowed
            return
        self.vec = PinnedVec(BN254.fr, pool=self.pool)
        self.model, self.open, self.flying = [], 0, False
        self.stream = FAKE.stream()

    @invariant()
    def contents_agree(self) -> None:
        assert len(self.vec) == len(self.model) <= self.vec.capacity  # type: ignore[arg-type,union-attr]
        assert self.vec.nbytes == 32 * len(self.model)
        view = self.writer if self.writer is not None else self.vec.borrow().numpy()
        if len(self.model) < 200:
            assert BN254.fr.decode(view) == self.model
        else:
            picks = [0, 1, len(self.model) // 2, len(self.model) - 1]
            assert BN254.fr.decode(np.ascontiguousarray(view[picks])) == [self.model[i] for i in picks]
        del view
        s = self.pool.stats()
        assert s.total == self.pool.budget.stats().used == FAKE.live_bytes()
        assert s.out == sum(o.nbytes for o in self.pool.outstanding())
        assert len(self.pool.outstanding()) <= 1

    def teardown(self) -> None:
        self.readers, self.writer = [], None
        FAKE.reset()
        self.vec.release()
        self.pool.settle(10)
        self.pool.close()
        assert self.pool.stats().total == FAKE.live_bytes() == 0


TestBudget = BudgetMachine.TestCase
TestPool = PoolMachine.TestCase
TestPoolWithoutWiping = PoolMachineWithoutWiping.TestCase
TestVec = VecMachine.TestCase
for _case in (TestBudget, TestPool, TestPoolWithoutWiping, TestVec):
    _case.settings = STEPS
del _case

# SPDX-License-Identifier: Apache-2.0
"""ProvingAssignment and DensityTracker against plain Python: doors, extension, sealing, ownership, refusals."""

from __future__ import annotations

import gc
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pinzk._core.assignment import Capacity, DensityTracker, ProvingAssignment, Variable, capacity_hints
from pinzk._core.memory import MemoryBudget, PinnedPool
from pinzk.curves import BLS12_381, BN254, Words
from pinzk.errors import BorrowError, BudgetExceeded, FormatError, UseAfterMove, UseAfterRelease, WitnessError

FR, R = BLS12_381.fr, BLS12_381.fr.modulus
ONE = ProvingAssignment.ONE


@pytest.fixture
def pool() -> Iterator[PinnedPool]:
    pool = PinnedPool(MemoryBudget(256 << 20), kind="pageable")
    yield pool
    gc.collect()
    assert pool.stats().out == 0, "memory that did not come home"


def values(vec: Any) -> list[int]:
    return FR.decode(vec.borrow().numpy())


# ---- densities ----


@given(st.lists(st.integers(0, 199)), st.integers(1, 200))
def test_density_counts_each_variable_once(used: list[int], n: int) -> None:
    tracker, model = DensityTracker(n), [False] * n
    for i in used:
        if i < n:
            tracker.inc(i)
            model[i] = True
    assert (len(tracker), tracker.count) == (n, sum(model))
    assert tracker.mask.tolist() == model
    words = tracker.words
    assert [bool(int(words[i // 64]) >> i % 64 & 1) for i in range(n)] == model
    assert sum(int(w).bit_count() for w in words) == tracker.count


masks = st.lists(st.booleans(), max_size=200)


def tracker_of(mask: list[bool]) -> DensityTracker:
    tracker = DensityTracker(len(mask))
    tracker |= np.array(mask, dtype=bool)
    return tracker


@settings(max_examples=300)
@given(masks, masks, st.booleans())
def test_density_extension_is_concatenation_with_one_first_input(
    a: list[bool], b: list[bool], is_input: bool
) -> None:
    tracker, other = tracker_of(a), tracker_of(b)
    tracker.extend(other, is_input)
    want = [a[0] or b[0], *a[1:], *b[1:]] if is_input and a and b else a + b
    assert tracker.mask.tolist() == want
    assert tracker.count == sum(want)
    assert other.mask.tolist() == b
    tracker.add(3)
    assert tracker.mask.tolist() == [*want, False, False, False]


@given(masks, st.data())
def test_density_union(a: list[bool], data: Any) -> None:
    b = data.draw(st.lists(st.booleans(), min_size=len(a), max_size=len(a)))
    tracker = tracker_of(a)
    tracker |= tracker_of(b)
    assert tracker.mask.tolist() == [x or y for x, y in zip(a, b, strict=True)]
    assert tracker.count == sum(tracker.mask)


def test_density_refuses() -> None:
    tracker = DensityTracker(70)
    for i in (-1, 70):
        with pytest.raises(IndexError):
            tracker.inc(i)
    bad_masks: list[Any] = [np.ones(69, dtype=bool), np.ones(70, dtype=np.uint8)]
    for bad in bad_masks:
        with pytest.raises(ValueError, match=r"bool\[70\]"):
            tracker |= bad
    with pytest.raises(ValueError, match="itself"):
        tracker.extend(tracker, False)
    with pytest.raises(TypeError):
        pickle.dumps(tracker)
    assert tracker.count == 0


# ---- one by one ----


def test_enforce_by_hand(pool: PinnedPool) -> None:
    with ProvingAssignment(BLS12_381, pool=pool) as p:
        x, y = p.alloc(3), p.alloc_input(5)
        z = p.alloc(R - 1)
        assert [x, y, z] == [Variable(False, 0), Variable(True, 1), Variable(False, 1)]
        p.enforce([(x, 2), (ONE, 1)], [(y, 1), (z, 7)], [(x, 0), (z, -1)])
        p.enforce([(x, 0)], [], [])
        p.enforce([(z, R), (x, R + 1)], [(ONE, 3)], [(y, 1)])
        assert values(p.a) == [7, 0, 3]
        assert values(p.b) == [(5 - 7) % R, 0, 3]
        assert values(p.c) == [1, 0, 5]
        assert values(p.input_assignment) == [1, 5]
        assert values(p.aux_assignment) == [3, R - 1]
        assert p.a_aux.mask.tolist() == [True, False]
        assert p.b_input.mask.tolist() == [True, True]
        assert p.b_aux.mask.tolist() == [False, True]
        assert p.sizes == (3, 2, 2)
        p.seal()
        p.seal()
        assert values(p.a) == [7, 0, 3, 1, 5]
        assert values(p.b) == [(5 - 7) % R, 0, 3, 0, 0]
        assert values(p.c) == [1, 0, 5, 0, 0]
        assert p.sizes == (3, 2, 2)


def test_without_c(pool: PinnedPool) -> None:
    with ProvingAssignment(BLS12_381, pool=pool, with_c=False) as p:
        p.enforce([(ONE, 2)], [(ONE, 3)], [(ONE, 4)])
        assert p.c is None
        p.extend_rows(FR.encode([5]), FR.encode([6]))
        with pytest.raises(ValueError, match="keeps no c"):
            p.extend_rows(*[FR.encode([5])] * 3)
        p.seal()
        assert (values(p.a), values(p.b)) == ([2, 5, 1], [3, 6, 0])


def snapshot(p: ProvingAssignment) -> list[Any]:
    vecs = [p.a, p.b, p.c, p.input_assignment, p.aux_assignment]
    trackers = [p.a_aux, p.b_input, p.b_aux]
    return [None if v is None else values(v) for v in vecs] + [t.mask.tolist() for t in trackers]


REFUSED: list[tuple[Callable[[ProvingAssignment], Any], type[Exception]]] = [
    (lambda p: p.alloc(R), WitnessError),
    (lambda p: p.alloc(-1), WitnessError),
    (lambda p: p.alloc_input(R), WitnessError),
    (lambda p: p.alloc("1"), TypeError),  # type: ignore[arg-type]
    (lambda p: p.alloc(1.0), TypeError),  # type: ignore[arg-type]
    (lambda p: p.enforce([(ONE, 1)], [(Variable(False, 9), 1)], []), IndexError),
    (lambda p: p.enforce([(ONE, 1)], [(Variable(True, 9), 0)], []), IndexError),
    (lambda p: p.enforce([(ONE, 1)], [], [(Variable(False, 9), 1)]), IndexError),
    (lambda p: p.enforce([("x", 1)], [], []), TypeError),  # type: ignore[list-item]
    (lambda p: p.enforce([(ONE, 0.5)], [], []), TypeError),  # type: ignore[list-item]
    (lambda p: p.extend_rows(FR.encode([1]), FR.encode([1])), ValueError),
    (lambda p: p.extend_rows(FR.encode([1]), FR.encode([1]), FR.encode([1, 2])), ValueError),
    (lambda p: p.extend_rows(FR.encode([1]), FR.encode([1]), big(1, 0)), FormatError),
    (lambda p: p.extend_rows(big(5, 3), *[FR.encode([1] * 5)] * 2), FormatError),
    (lambda p: p.extend_inputs(big(2, 1)), FormatError),
    (lambda p: p.extend_aux(big(100_000, 99_999)), FormatError),
    (lambda p: p.extend_aux(np.zeros((2, 3), dtype=np.uint64)), ValueError),
    (lambda p: p.extend_aux(np.zeros((2, 4), dtype=np.int64)), ValueError),
    (lambda p: p.extend_aux(FR.encode([1]), threads=0), ValueError),
    (lambda p: p.extend(p), ValueError),
    (lambda p: p.extend(ProvingAssignment(BN254, pool=PinnedPool(kind="pageable"))), ValueError),
    (
        lambda p: p.extend(ProvingAssignment(BLS12_381, pool=PinnedPool(kind="pageable"), with_c=False)),
        ValueError,
    ),
    (lambda p: setattr(p, "a_aux", DensityTracker(1)), AttributeError),
    (lambda p: pickle.dumps(p), TypeError),
]


def big(n: int, at: int) -> Words:
    """Zeros, and r itself in row `at`."""
    rows = np.zeros((n, 4), dtype=np.uint64)
    rows[at] = [(R >> 64 * i) & (2**64 - 1) for i in range(4)]
    return rows


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_is_refused_changes_nothing(pool: PinnedPool, case: int) -> None:
    call, error = REFUSED[case]
    with ProvingAssignment(BLS12_381, pool=pool) as p:
        x = p.alloc(3)
        p.enforce([(x, 2)], [(ONE, 1)], [(x, 1)])
        before = snapshot(p)
        with pytest.raises(error) as caught:
            call(p)
        assert snapshot(p) == before
        if error in (FormatError, WitnessError):
            assert isinstance(caught.value, (FormatError, WitnessError))
            assert caught.value.index is not None
            assert str(R) not in str(caught.value)


def test_a_value_out_of_range_is_named(pool: PinnedPool) -> None:
    with ProvingAssignment(BLS12_381, pool=pool) as p:
        rows = FR.encode([1] * 70_000)
        rows[[69_000, 33_333]] = 2**64 - 1
        good = FR.encode([1] * 70_000)
        for threads in (1, 3):
            with pytest.raises(FormatError, match="row 33333 of b is not below r"):
                p.extend_rows(good, rows, good, threads=threads)
        p.extend_rows(good, good, good, threads=3)
        np.testing.assert_array_equal(p.c.borrow().numpy(), good)  # type: ignore[union-attr]


# ---- ends ----


def test_abc_go_home_before_the_rest(pool: PinnedPool) -> None:
    p = ProvingAssignment(BLS12_381, constraints=1 << 16, aux=1 << 12, pool=pool)
    all_of_it = pool.stats().out
    assert not p.abc_released
    lease = p.b.borrow()
    with pytest.raises(BorrowError):
        p.release_abc()
    assert pool.stats().out == all_of_it and not p.abc_released
    del lease
    threads = [threading.Thread(target=p.release_abc) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    p.release_abc()
    assert p.abc_released
    assert pool.stats().out <= all_of_it - 3 * 32 * (1 << 16)
    for use in (lambda: p.a, lambda: p.c, lambda: p.enforce([], [], []), p.seal, lambda: p.sizes):
        with pytest.raises(UseAfterRelease):
            use()
    assert len(p.aux_assignment) == 0
    p.release()
    for use in (p.release, lambda: p.aux_assignment, lambda: p.a_aux, lambda: p.a, p.seal):
        with pytest.raises(UseAfterRelease):
            use()
    p.release_abc()
    assert "released" in repr(p)


def test_release_while_borrowed_releases_nothing(pool: PinnedPool) -> None:
    p = ProvingAssignment(BLS12_381, pool=pool)
    for vec in ("a", "input_assignment", "aux_assignment"):
        lease = getattr(p, vec).borrow()
        with pytest.raises(BorrowError):
            p.release()
        del lease
    assert len(p.a) == 0
    p.release()


def test_dropped_in_every_way(pool: PinnedPool) -> None:
    p: Any = ProvingAssignment(BLS12_381, pool=pool)
    del p
    gc.collect()
    assert pool.stats().out == 0
    with pytest.raises(ZeroDivisionError), ProvingAssignment(BLS12_381, pool=pool) as q:
        q.alloc(1 // 0)
    assert pool.stats().out == 0
    cycle: list[Any] = [ProvingAssignment(BLS12_381, pool=pool)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert pool.stats().out == 0
    with ProvingAssignment(BLS12_381, pool=pool) as r:
        r.release()


def test_sealed_is_the_end_of_synthesis(pool: PinnedPool) -> None:
    p, q = (ProvingAssignment(BLS12_381, pool=pool) for _ in range(2))
    p.seal()
    for call in (
        lambda: p.alloc(1),
        lambda: p.alloc_input(1),
        lambda: p.enforce([], [], []),
        lambda: p.extend_aux(FR.encode([1])),
        lambda: p.extend(q),
        lambda: q.extend(p),
    ):
        with pytest.raises(ValueError, match="sealed"):
            call()
    assert snapshot(p)[0] == [1]
    p.release()
    q.release()


def test_a_moved_part_is_empty(pool: PinnedPool) -> None:
    p, q = (ProvingAssignment(BLS12_381, pool=pool) for _ in range(2))
    q.alloc(5)
    lease = q.aux_assignment.borrow()
    with pytest.raises(BorrowError):
        p.extend(q)
    del lease
    assert len(p.aux_assignment) == 0
    p.extend(q)
    for use in (lambda: q.aux_assignment, lambda: q.a, q.release, lambda: p.extend(q)):
        with pytest.raises(UseAfterMove):
            use()
    assert q.abc_released
    q.release_abc()
    assert values(p.aux_assignment) == [5]
    p.release()


def test_no_room_changes_nothing() -> None:
    pool = PinnedPool(MemoryBudget(8 << 20), kind="pageable")
    with ProvingAssignment(BLS12_381, constraints=1 << 15, pool=pool) as p:
        p.alloc(7)
        before = snapshot(p)
        rows = np.zeros((1 << 16, 4), dtype=np.uint64)
        with pytest.raises(BudgetExceeded):
            p.extend_rows(rows, rows, rows)
        assert snapshot(p) == before
        p.extend_rows(rows[:100], rows[:100], rows[:100])
    with pytest.raises(BudgetExceeded):
        ProvingAssignment(BLS12_381, constraints=1 << 20, pool=pool)
    gc.collect()
    assert pool.stats().out == 0


# ---- sizes remembered ----


def test_the_first_synthesis_teaches_the_second(pool: PinnedPool) -> None:
    name = "test_the_first_synthesis_teaches_the_second"
    assert capacity_hints.get(name) is None
    with ProvingAssignment.for_circuit(name, BLS12_381, pool=pool) as p:
        for i in range(300):
            x = p.alloc(i)
            p.enforce([(x, 1)], [(ONE, 1)], [(x, 1)])
        p.alloc_input(1)
        assert capacity_hints.get(name) is None
        p.seal()
    assert capacity_hints.get(name) == Capacity(300, 300, 2)
    with ProvingAssignment.for_circuit(name, BLS12_381, pool=pool, inputs=5) as p:
        assert p.a.capacity >= 302 and p.aux_assignment.capacity >= 300 and p.input_assignment.capacity >= 5
        blocks = [v.ptr for v in (p.a, p.b, p.c, p.aux_assignment) if v is not None]
        rows = FR.encode([1] * 300)
        p.extend_rows(rows, rows, rows)
        p.extend_aux(rows)
        p.seal()
        assert blocks == [v.ptr for v in (p.a, p.b, p.c, p.aux_assignment) if v is not None], "nothing grew"
        capacity_hints.learn(name, p)
    assert capacity_hints.get(name) == Capacity(300, 300, 2)  # the larger of each
    with ProvingAssignment.with_capacity(BLS12_381, 10, 20, 3, pool=pool, with_c=False) as p:
        assert p.aux_assignment.capacity >= 20 and p.c is None


# ---- against a plain model ----


@dataclass
class Model:
    """What an assignment holds, in Python ints."""

    inputs: list[int] = field(default_factory=lambda: [1])
    aux: list[int] = field(default_factory=list)
    rows: list[tuple[int, int, int]] = field(default_factory=list)
    in_a: set[int] = field(default_factory=set)  # aux
    in_b: set[tuple[bool, int]] = field(default_factory=set)

    def value(self, v: Variable) -> int:
        return (self.inputs if v.is_input else self.aux)[v.index]

    def enforce(self, a: list[Any], b: list[Any], c: list[Any]) -> None:
        self.rows.append(
            (
                sum(self.value(v) * k for v, k in a) % R,
                sum(self.value(v) * k for v, k in b) % R,
                sum(self.value(v) * k for v, k in c) % R,
            )
        )
        self.in_a |= {v.index for v, k in a if k % R and not v.is_input}
        self.in_b |= {(v.is_input, v.index) for v, k in b if k % R}

    def extend(self, other: Model) -> None:
        n_inputs, n_aux = len(self.inputs), len(self.aux)
        self.inputs += other.inputs[1:]
        self.aux += other.aux
        self.rows += other.rows
        self.in_a |= {n_aux + i for i in other.in_a}
        for is_input, i in other.in_b:
            self.in_b.add((True, 0 if i == 0 else n_inputs + i - 1) if is_input else (False, n_aux + i))


def assert_same(p: ProvingAssignment, model: Model) -> None:
    rows = model.rows
    if p.sealed:
        rows = rows + [(x, 0, 0) for x in model.inputs]
    assert [values(v) for v in (p.a, p.b, p.c)] == [[row[k] for row in rows] for k in range(3)]
    assert values(p.input_assignment) == model.inputs
    assert values(p.aux_assignment) == model.aux
    assert p.a_aux.mask.tolist() == [i in model.in_a for i in range(len(model.aux))]
    assert p.b_aux.mask.tolist() == [(False, i) in model.in_b for i in range(len(model.aux))]
    assert p.b_input.mask.tolist() == [(True, i) in model.in_b for i in range(len(model.inputs))]
    assert p.a_aux.count == len(model.in_a)
    assert p.b_input.count + p.b_aux.count == len(model.in_b)
    assert p.sizes == (len(model.rows), len(model.aux), len(model.inputs))


scalars = st.sampled_from([0, 1, 2, R - 1]) | st.integers(0, R - 1)
coefficients = st.sampled_from([0, 1, -1, 2, R, R - 1]) | st.integers(-R, 2 * R)
few = st.lists(scalars, max_size=70)


class Synthesis(RuleBasedStateMachine):
    """A few assignments at once, extended by one another; each agrees with its model after every step."""

    @initialize()
    def start(self) -> None:
        self.pool = PinnedPool(MemoryBudget(64 << 20), kind="pageable")
        self.live: list[tuple[ProvingAssignment, Model]] = []
        self.ended: list[ProvingAssignment] = []
        self.new()

    @rule()
    def new(self) -> None:
        if len(self.live) < 4:
            self.live.append((ProvingAssignment(BLS12_381, pool=self.pool), Model()))

    def one(self, data: Any) -> tuple[ProvingAssignment, Model]:
        self.new() if not self.live else None
        return self.live[data.draw(st.integers(0, len(self.live) - 1))]

    def open(self, data: Any) -> tuple[ProvingAssignment, Model] | None:
        found = self.one(data)
        return None if found[0].sealed else found

    @rule(data=st.data(), value=scalars, is_input=st.booleans())
    def alloc(self, data: Any, value: int, is_input: bool) -> None:
        if found := self.open(data):
            p, model = found
            to = model.inputs if is_input else model.aux
            assert (p.alloc_input if is_input else p.alloc)(value) == Variable(is_input, len(to))
            to.append(value)

    @rule(data=st.data())
    def enforce(self, data: Any) -> None:
        if found := self.open(data):
            p, model = found
            variables = [Variable(True, i) for i in range(len(model.inputs))]
            variables += [Variable(False, i) for i in range(len(model.aux))]
            combination = st.lists(st.tuples(st.sampled_from(variables), coefficients), max_size=3)
            a, b, c = (data.draw(combination) for _ in range(3))
            p.enforce(iter(a), b, tuple(c))
            model.enforce(a, b, c)

    @rule(data=st.data(), x=few, is_input=st.booleans())
    def bulk_variables(self, data: Any, x: list[int], is_input: bool) -> None:
        if found := self.open(data):
            p, model = found
            (p.extend_inputs if is_input else p.extend_aux)(FR.encode(x))
            (model.inputs if is_input else model.aux).extend(x)

    @rule(data=st.data(), x=few)
    def bulk_rows(self, data: Any, x: list[int]) -> None:
        if found := self.open(data):
            p, model = found
            p.extend_rows(FR.encode(x), FR.encode(x[::-1]), FR.encode(x))
            model.rows += zip(x, x[::-1], x, strict=True)
            used = [i for i in range(len(model.aux)) if i % 3 == 0]
            mask = np.zeros(len(model.aux), dtype=bool)
            mask[used] = True
            p.a_aux |= mask
            model.in_a |= set(used)

    @rule(data=st.data())
    def extend(self, data: Any) -> None:
        p, q = self.one(data), self.one(data)
        if p is q or p[0].sealed or q[0].sealed:
            with pytest.raises(ValueError):
                p[0].extend(q[0])
            return
        p[0].extend(q[0])
        p[1].extend(q[1])
        self.live.remove(q)
        self.ended.append(q[0])

    @rule(data=st.data())
    def seal(self, data: Any) -> None:
        self.one(data)[0].seal()

    @rule(data=st.data(), how=st.sampled_from(["release", "abc", "drop", "with"]))
    def end(self, data: Any, how: str) -> None:
        found = self.one(data)
        p = found[0]
        self.live.remove(found)
        if how == "release":
            p.release()
            self.ended.append(p)
        elif how == "abc":
            p.release_abc()
            p.release_abc()
            assert p.abc_released
            p.release()
        elif how == "with":
            with p:
                pass

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def use_after_the_end(self, data: Any) -> None:
        p = data.draw(st.sampled_from(self.ended))
        for use in (p.release, p.seal, lambda: p.a, lambda: p.alloc(1), lambda: p.aux_assignment):
            with pytest.raises((UseAfterRelease, UseAfterMove)):
                use()
        p.release_abc()

    @invariant()
    def all_agree(self) -> None:
        for p, model in self.live:
            assert_same(p, model)

    @invariant()
    def memory_adds_up(self) -> None:
        if not self.live:
            gc.collect()
        stats = self.pool.stats()
        assert stats.free + stats.out + stats.pending + stats.dirty + stats.quarantined == stats.total
        assert (stats.out > 0) == bool(self.live)

    def teardown(self) -> None:
        for p, _ in self.live:
            p.release()
        assert self.pool.stats().out == 0
        self.pool.close()


TestSynthesis = Synthesis.TestCase
TestSynthesis.settings = settings(max_examples=120, stateful_step_count=40)


@settings(max_examples=60)
@given(st.data())
def test_extending_parts_is_sequential_synthesis(data: Any) -> None:
    """The same statements in one assignment, and in parts that are then put together."""
    pool = PinnedPool(MemoryBudget(64 << 20), kind="pageable")
    whole = ProvingAssignment(BLS12_381, pool=pool)
    parts = []
    for _ in range(data.draw(st.integers(1, 4))):
        part = ProvingAssignment(BLS12_381, pool=pool)
        mine, theirs = [ONE], [ONE]
        for value, is_input in data.draw(st.lists(st.tuples(scalars, st.booleans()), max_size=6)):
            mine.append(part.alloc_input(value) if is_input else part.alloc(value))
            theirs.append(whole.alloc_input(value) if is_input else whole.alloc(value))
        terms = st.lists(st.tuples(st.integers(0, len(mine) - 1), coefficients), max_size=3)
        for row in data.draw(st.lists(st.tuples(terms, terms, terms), max_size=5)):
            part.enforce(*([(mine[i], k) for i, k in combination] for combination in row))
            whole.enforce(*([(theirs[i], k) for i, k in combination] for combination in row))
        parts.append(part)
    first, *others = parts
    for other in others:
        first.extend(other)
    for p in (first, whole):
        p.seal()
    assert snapshot(first) == snapshot(whole)
    first.release()
    whole.release()
    assert pool.stats().out == 0

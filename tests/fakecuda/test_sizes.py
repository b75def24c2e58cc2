# SPDX-License-Identifier: Apache-2.0
"""Sizes and accounting (statements T13 to T20), NUMA nodes (T45)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_cuda import Fake
from hypothesis import given, settings
from hypothesis import strategies as st

from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk._core.memory import pool as pool_module
from pinzk.curves import BLS12_381, BN254
from pinzk.errors import BudgetExceeded

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
Pools = Callable[..., PinnedPool]
TOO_MUCH = (2**63, 2**64 - 1, 2**64, 10**30)


@settings(max_examples=60)
@given(st.integers(1, 64 * MIB))
def test_t13_at_most_an_eighth_is_wasted(n: int) -> None:
    p = PinnedPool(MemoryBudget(GIB), kind="pageable")
    with p.checkout(n) as b:
        assert n <= b.nbytes
        if n >= MIB:
            assert b.nbytes <= max(n * 1.125, n + 4096)
        assert p.budget.stats().used == p.stats().total >= b.nbytes, "real bytes are charged"
        if n > 128 * KIB:
            assert p.stats().total == b.nbytes
    p.close()


def test_t13_exact_above_a_threshold() -> None:
    p = PinnedPool(MemoryBudget(1 << 40), kind="pageable")  # pages that nobody touches cost nothing
    for n in (GIB + 1, 3 * GIB - 5000, 4_168_923_808):
        with p.checkout(n) as b:
            assert n <= b.nbytes < n + 4096
    p.close()


def test_t13_reuse_has_the_same_limit(fake: Fake, pool: Pools) -> None:
    p = pool()
    p.checkout(64 * MIB).release()
    with p.checkout(32 * MIB) as b:
        assert b.nbytes == 32 * MIB, "a block of twice the size must not serve it"


def test_t14_sizes_are_rounded_whether_or_not_blocks_are_kept(fake: Fake, pool: Pools) -> None:
    p = pool()
    with p.checkout(5 * MIB + 1) as b:
        size = b.nbytes
    p.trim()
    assert p.stats().total == 0, "keeping nothing is one choice"
    with p.checkout(5 * MIB + 1) as b:
        assert b.nbytes == size, "rounding is another"
    exact = pool(5 * MIB + 4 * KIB)  # a budget in which only whole pages fit
    with exact.checkout(5 * MIB + 1) as b:
        assert b.nbytes == 5 * MIB + 4 * KIB


@pytest.mark.parametrize("first", [1, 4 * KIB, 100 * KIB, 3 * MIB, 7 * MIB])
@pytest.mark.parametrize("total", [4 * KIB, 100 * KIB, MIB, 10 * MIB])
def test_t15_the_whole_budget_can_be_had_when_nothing_is_out(pool: Pools, total: int, first: int) -> None:
    p = pool(total)
    if first <= total:
        p.checkout(first).release()
    with p.checkout(total, timeout=0) as b:
        assert b.nbytes == total
        assert p.stats().total == p.budget.stats().used == total


def test_t16_blocks_lie_inside_their_memory_and_are_disjoint(pool: Pools) -> None:
    p = pool()
    rng = np.random.default_rng(16)
    blocks = [p.checkout(int(n)) for n in np.exp(rng.uniform(0, np.log(3 * MIB), 200)).astype(int) + 1]
    extents = sorted((b.ptr, b.ptr + b.nbytes) for b in blocks)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(extents))
    for i, b in enumerate(blocks):
        b.borrow_mut().numpy()[:] = i
    for i, b in enumerate(blocks):
        assert (b.borrow().numpy() == i).all()
    for b in blocks:
        b.release()


def test_t16_a_vector_never_holds_more_than_its_block(pool: Pools) -> None:
    for elem in (BN254.fr, BLS12_381.g1, BLS12_381.g2, "bytes"):
        for capacity in (1, 3, 1000, 10_001):
            with PinnedVec(elem, capacity, pool=pool()) as v:
                row = 1 if isinstance(elem, str) else elem.nbytes
                block = v.into_backing()
                assert capacity * row <= block.nbytes
                with pytest.raises(ValueError, match="holds"):
                    block.into_vec(elem, block.nbytes // row + 1)
                w = block.into_vec(elem)
                assert w.capacity * row <= w.into_backing().nbytes


@pytest.mark.parametrize("n", TOO_MUCH)
def test_t18_sizes_that_overflow_are_refused_before_any_driver_call(fake: Fake, pool: Pools, n: int) -> None:
    p, before = pool(), fake.calls()
    doors: list[Callable[[Any], Any]] = [
        p.checkout,
        p.warm,
        p.trim,
        lambda n: p.budget.reserve(n, "x"),
        lambda n: p.checkout_many([1, n]),
        lambda n: p.budget.try_reserve(n, "x"),
        lambda n: MemoryBudget(n),
        lambda n: PinnedVec(BN254.fr, n, pool=p),
        lambda n: PinnedVec("bytes", pool=p).resize(n),
    ]
    for door in doors:
        with pytest.raises(OverflowError):
            door(n)
    assert fake.calls() == before


def test_t18_products_that_overflow_are_refused(fake: Fake, pool: Pools) -> None:
    p, before = pool(), fake.calls()
    v = PinnedVec(BLS12_381.g2, pool=p)
    for n in (2**63 - 1, 2**56, (2**63 - 1) // 192 + 1):
        for change in (v.ensure, v.resize, v.spare_mut, lambda n: PinnedVec(BLS12_381.g2, n, pool=p)):
            with pytest.raises((OverflowError, BudgetExceeded)):
                change(n)
    for n in (2**63 - 1, 2**62, 2**62 + 1):
        with pytest.raises(BudgetExceeded):
            p.checkout(n)
    assert fake.calls() == before


@pytest.mark.parametrize("n", [-1, -(2**63)])
def test_t18_negative_sizes(pool: Pools, n: int) -> None:
    p = pool()
    v = PinnedVec("bytes", pool=p)
    doors: list[Callable[[int], Any]] = [
        p.checkout,
        p.warm,
        p.trim,
        MemoryBudget,
        v.resize,
        v.truncate,
        v.ensure,
        v.spare_mut,
        v.commit,
        lambda n: p.budget.reserve(n, "x"),
    ]
    for door in doors:
        with pytest.raises(ValueError):
            door(n)
    with pytest.raises(TypeError):
        p.checkout(1.5)  # type: ignore[arg-type]


def test_t19_nothing_is_a_size(fake: Fake, pool: Pools) -> None:
    p, before = pool(1), fake.calls()
    b = p.checkout(0, timeout=0)
    assert (b.nbytes, b.ptr, b.in_flight) == (0, 0, False)
    assert b.borrow().numpy().shape == (0,)
    b.release()
    with pytest.raises(ValueError, match="released before"):
        b.release()
    v = PinnedVec(BN254.fr, 0, pool=p)
    assert (len(v), v.capacity, v.nbytes) == (0, 0, 0)
    assert v.borrow().numpy().shape == (0, 4)
    v.extend(np.zeros((0, 4), np.uint64))
    v.resize(0)
    assert v.into_backing().into_vec("bytes").capacity == 0
    assert [x.nbytes for x in p.checkout_many([0, 0])] == [0, 0]
    p.warm(0, 5)
    with p.register(bytearray()) as r:
        assert r.nbytes == 0
    p.budget.reserve(0, "nothing").release()
    assert fake.calls() == before


def test_t45_blocks_of_one_node_do_not_serve_another(
    fake: Fake, pool: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = 0
    monkeypatch.setattr(pool_module, "_topology", lambda: node)
    p = pool(numa="local")
    with p.checkout(2 * MIB) as b:
        first = b.ptr
    node = 1
    with p.checkout(2 * MIB) as b:
        second = b.ptr
    assert first != second
    for node, address in ((0, first), (1, second), (0, first)):  # noqa: B007 (read by the topology)
        with p.checkout(2 * MIB) as b:
            assert b.ptr == address
    fixed = pool(numa=1)
    with fixed.checkout(100) as b:
        assert b.nbytes >= 100
    for bad in (-1, "near", 1.0, True):
        with pytest.raises(ValueError, match="numa"):
            PinnedPool(MemoryBudget(1), numa=bad)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""Sparse rows against a canonical witness, in Python integers: out_i = sum c_k w_(column k), Montgomery."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import CURVES, by_name, random_ints

from pinzk._core import cpu
from pinzk.curves import BN254

FIELDS = [c.fr for c in CURVES]
every_field = pytest.mark.parametrize("field", FIELDS, ids=by_name)


def evaluate(field, rows, witness, **kw) -> list[int]:
    """`sparse_rows` of lists of (column, coefficient)."""
    r = field.modulus
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.uint64)
    flat = [entry for row in rows for entry in row]
    indices = np.array([i for i, _ in flat], dtype=np.uint32)
    values = field.encode_canonical([c * (1 << 512) % r for _, c in flat])  # c R^2, as in a zkey
    out = cpu.sparse_rows(field, indptr, indices, values, field.encode_canonical(witness), **kw)
    assert cpu.first_unreduced(field, out) is None
    return field.decode(out)


def expected(field, rows, witness) -> list[int]:
    return [sum(c * witness[i] for i, c in row) % field.modulus for row in rows]


def random_rows(field, n: int, columns: int, longest: int, seed: int) -> list[list[tuple[int, int]]]:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, longest + 1, n)
    coefficients = iter(random_ints(field.modulus, int(lengths.sum()), seed))
    return [[(int(i), next(coefficients)) for i in random.integers(0, columns, k)] for k in lengths]


@every_field
@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 237, 4095, 4096, 4097, 9000])
def test_rows_are_sums_of_products(field, n):
    witness = random_ints(field.modulus, 50, n)
    rows = random_rows(field, n, 50, 4, n + 1)
    for threads in (1, 3):
        assert evaluate(field, rows, witness, threads=threads) == expected(field, rows, witness)


@every_field
def test_edge_values_of_coefficients_and_witness(field):
    edges = oracle.edge_values(field.modulus, 4)
    rows = [[(i, c)] for i in range(len(edges)) for c in edges]
    rows += [[(i, c), (i, field.modulus - c)] for i, c in enumerate(edges[1:])]  # cancels
    assert evaluate(field, rows, edges) == expected(field, rows, edges)


@every_field
def test_empty_rows_are_zero_wherever_they_stand(field):
    witness = random_ints(field.modulus, 3, 1)
    matrices: list[list[list[tuple[int, int]]]] = [[[]], [[], []], [[], [(0, 5)], []]]
    for rows in [*matrices, [[(2, 1)], [], [], [(1, 7), (1, 7)]]]:
        assert evaluate(field, rows, witness) == expected(field, rows, witness)


@every_field
def test_repeated_columns_add_up(field):
    r = field.modulus
    witness = [r - 1, 1, 0]
    rows = [[(0, r - 1)] * 100, [(1, r - 1)] * 100, [(2, 3)] * 100]
    assert evaluate(field, rows, witness) == [100 % r, -100 % r, 0]


@every_field
def test_one_long_row(field):
    witness = random_ints(field.modulus, 20000, 3)
    rows = [[(0, 1)], list(enumerate(random_ints(field.modulus, 20000, 4))), [(19999, 1)]]
    assert evaluate(field, rows, witness, threads=2) == expected(field, rows, witness)


@pytest.mark.parametrize("field", FIELDS[:2], ids=by_name)
@given(data=st.data())
def test_any_small_matrix(field, data):
    element = st.one_of(st.sampled_from([0, 1, field.modulus - 1]), st.integers(0, field.modulus - 1))
    witness = data.draw(st.lists(element, min_size=1, max_size=6))
    entry = st.tuples(st.integers(0, len(witness) - 1), element)
    rows = data.draw(st.lists(st.lists(entry, max_size=5), max_size=6))
    assert evaluate(field, rows, witness) == expected(field, rows, witness)


def test_the_result_may_be_given():
    f = BN254.fr
    out = np.empty((1, 4), dtype=np.uint64)
    indptr, indices = np.array([0, 1], dtype=np.uint64), np.array([0], dtype=np.uint32)
    values = f.encode_canonical([(1 << 512) % f.modulus])
    assert cpu.sparse_rows(f, indptr, indices, values, f.encode_canonical([9]), out) is out
    assert f.decode(out) == [9]


def test_wrong_shapes_are_refused():
    f = BN254.fr
    values, indices = np.zeros((2, 4), dtype=np.uint64), np.zeros(2, dtype=np.uint32)
    w = np.zeros((1, 4), dtype=np.uint64)

    def indptr(*v):
        return np.array(v, dtype=np.uint64)

    with pytest.raises(ValueError, match="indptr must not be empty"):
        cpu.sparse_rows(f, indptr(), indices, values, w)
    for end in (1, 3, 1 << 60):
        with pytest.raises(ValueError, match="indptr must end at len"):
            cpu.sparse_rows(f, indptr(0, end), indices, values, w)
    with pytest.raises(ValueError, match="lengths differ: 2 and 1"):
        cpu.sparse_rows(f, indptr(0, 2), indices, values[:1].copy(), w)
    with pytest.raises(ValueError, match="out must have shape"):
        cpu.sparse_rows(f, indptr(0, 2), indices, values, w, np.empty((2, 4), dtype=np.uint64))
    with pytest.raises(ValueError, match="scalar field"):
        cpu.sparse_rows(BN254.fp, indptr(0, 2), indices, values, w)

# SPDX-License-Identifier: Apache-2.0
"""Loops of the CPU backend over rows of field elements: conversions, products, powers, inverses, range checks."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from references import CURVES, FIELDS, by_name, edge_pairs, random_ints, samples

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254
from pinzk.errors import FormatError

SIZES = [
    0,
    1,
    2,
    31,
    32,
    33,
    237,
    (1 << 14) - 1,
    1 << 14,
    (1 << 14) + 1,
    (1 << 15) + 5,
]  # chunks are 2^14 rows

every_field = pytest.mark.parametrize("field", FIELDS, ids=by_name)
every_scalar_field = pytest.mark.parametrize("field", [c.fr for c in CURVES], ids=by_name)


@every_field
@pytest.mark.parametrize("n", SIZES)
def test_loops_convert_and_multiply_every_row(field, n):
    p = field.modulus
    a, b = random_ints(p, n, 10), random_ints(p, n, 11)
    canonical = field.encode_canonical(a)
    rows = cpu.to_montgomery(field, canonical)
    assert np.array_equal(rows, field.encode(a))
    assert np.array_equal(cpu.from_montgomery(field, rows), canonical)
    product = cpu.multiply(field, rows, field.encode(b))
    assert field.decode(product) == [x * y % p for x, y in zip(a, b, strict=True)]


@every_field
def test_loops_may_write_over_their_input(field):
    a, b = samples(field)
    x, y = field.encode(a), field.encode(b)
    plain = [cpu.multiply(field, x, y), cpu.from_montgomery(field, x), cpu.to_montgomery(field, x)]
    over = [x.copy(), x.copy(), x.copy()]
    assert cpu.multiply(field, over[0], y, over[0]) is over[0]
    assert cpu.from_montgomery(field, over[1], over[1]) is over[1]
    assert cpu.to_montgomery(field, over[2], over[2]) is over[2]
    assert all(np.array_equal(p, q) for p, q in zip(plain, over, strict=True))
    squares, second = x.copy(), y.copy()
    cpu.multiply(field, squares, squares, squares)
    assert field.decode(squares) == [u * u % field.modulus for u in a]
    cpu.multiply(field, x, second, second)
    assert np.array_equal(second, plain[0])


@every_scalar_field
@pytest.mark.parametrize("n", SIZES)
def test_multiply_subtract_is_ab_minus_c(field, n):
    r = field.modulus
    a, b, c = (random_ints(r, n, seed) for seed in (12, 13, 14))
    x, y, z = (field.encode(v) for v in (a, b, c))
    expected = [(i * j - k) % r for i, j, k in zip(a, b, c, strict=True)]
    assert field.decode(cpu.multiply_subtract(field, x, y, z)) == expected
    assert cpu.multiply_subtract(field, x, y, z, z) is z
    assert field.decode(z) == expected


@every_scalar_field
def test_multiply_subtract_of_edge_values(field):
    r = field.modulus
    a, b = edge_pairs(field)
    c = [x * y % r for x, y in zip(a, b, strict=True)]
    assert not cpu.multiply_subtract(field, *map(field.encode, (a, b, c))).any()
    out = cpu.multiply_subtract(field, *map(field.encode, (a, b, b)))
    assert field.decode(out) == [(x - 1) * y % r for x, y in zip(a, b, strict=True)]


@every_scalar_field
@pytest.mark.parametrize("n", SIZES)
def test_powers_are_first_times_base_to_the_i(field, n):
    r = field.modulus
    for base, first in (
        (random_ints(r, 1, 15)[0], random_ints(r, 1, 16)[0]),
        (r - 1, 1),
        (1, r - 1),
        (0, 3),
        (2, 0),
    ):
        expected, x = [], first
        for _ in range(n):
            expected.append(x)
            x = x * base % r
        assert field.decode(cpu.powers(field, base, n, first=first)) == expected
    assert np.array_equal(cpu.powers(field, -1, n), cpu.powers(field, r - 1, n))


@every_scalar_field
@pytest.mark.parametrize("n", SIZES)
def test_batch_inverses_are_inverses_and_zeros_stay(field, n):
    r = field.modulus
    values = random_ints(r, n, 17)
    for zeros in ([], [0], [n - 1], range(0, n, 2), range(n)):
        some = list(values)
        for i in zeros:
            if 0 <= i < n:
                some[i] = 0
        rows = field.encode(some)
        out = cpu.invert(field, rows)
        assert field.decode(cpu.multiply(field, rows, out)) == [int(v != 0) for v in some]
        assert not out[[v == 0 for v in some]].any()
        assert np.array_equal(cpu.invert(field, rows, rows), out)


@every_scalar_field
def test_batch_inverses_of_edge_values(field):
    edges = oracle.edge_values(field.modulus, 4)
    expected = [pow(v, -1, field.modulus) if v else 0 for v in edges]
    assert field.decode(cpu.invert(field, field.encode(edges))) == expected


@every_field
def test_the_first_unreduced_row_is_found(field):
    p, top = field.modulus, 1 << 64 * field.limbs
    n = 40000
    rows = np.repeat(field.encode_canonical([p - 1]), n, axis=0)
    assert cpu.first_unreduced(field, rows) is None
    assert cpu.first_unreduced(field, rows[:0].copy()) is None
    for bad in (p, p + 1, top - 1, p | 1 << (64 * field.limbs - 1)):
        row = np.frombuffer(bad.to_bytes(field.nbytes, "little"), dtype=np.uint64)
        for places in ([0], [n - 1], [16383], [16384], [n - 1, 20000, 17], [5, 4]):
            spoiled = rows.copy()
            spoiled[places] = row
            for threads in (1, 3):
                assert cpu.first_unreduced(field, spoiled, threads=threads) == min(places)


@every_field
def test_encoding_refuses_what_is_no_element(field):
    for bad in (-1, field.modulus, 1 << 64 * field.limbs):
        with pytest.raises(FormatError) as caught:
            field.encode([0, 1, bad])
        assert caught.value.index == 2
        with pytest.raises(FormatError):
            field.encode_canonical([bad])


def test_wrong_shapes_are_refused():
    f, p = BN254.fr, BLS12_381.fp
    four, six = np.zeros((3, 4), dtype=np.uint64), np.zeros((3, 6), dtype=np.uint64)
    for call in (cpu.to_montgomery, cpu.from_montgomery, cpu.first_unreduced):
        with pytest.raises(ValueError, match=r"shape \(n, 4\), not \(3, 6\)"):
            call(f, six)
        with pytest.raises(ValueError, match=r"shape \(n, 6\), not \(3, 4\)"):
            call(p, four)
    with pytest.raises(ValueError, match="lengths differ: 3 and 2"):
        cpu.multiply(f, four, four[:2].copy())
    with pytest.raises(ValueError, match="out must have shape"):
        cpu.multiply(f, four, four, four[:2].copy())
    with pytest.raises(ValueError, match="lengths differ"):
        cpu.multiply_subtract(f, four, four, four[:1].copy())
    with pytest.raises(ValueError, match="scalar field"):
        cpu.invert(BN254.fp, four)
    with pytest.raises(ValueError, match="scalar field"):
        cpu.powers(BN254.fp, 2, 3)
    with pytest.raises(ValueError, match="negative"):
        cpu.powers(f, 2, -1)

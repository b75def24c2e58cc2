# SPDX-License-Identifier: Apache-2.0
"""Everything there is on the toy curve, through the same templates and loops: fields of 97 and 79, groups of 97 points."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import oracle
import probe
import pytest
from references import by_name
from test_curve import decode, decode_affine, encode

from pinzk._core import cpu
from pinzk._testing import TOY

ORDER = 97
every_field = pytest.mark.parametrize("field", [TOY.fr, TOY.fp], ids=by_name)
every_group = pytest.mark.parametrize("group", oracle.groups(TOY), ids=by_name)


@functools.cache
def multiples(group) -> list:
    """0 G, 1 G, ..., 96 G, by adding up; sums of points are then sums of indices."""
    curve, points = oracle.weierstrass(group), [None]
    for _ in range(ORDER - 1):
        points.append(curve.add(points[-1], group.generator()))
    assert curve.add(points[-1], group.generator()) is None
    return points


@functools.cache
def whole_curve(group) -> list:
    """Every point, infinity first, found by trying all coordinates."""
    p = group.base.modulus
    curve = oracle.weierstrass(group)
    f = curve.field
    numbers = range(p) if group.number == 1 else list(itertools.product(range(p), repeat=2))
    roots: dict = {}
    for y in numbers:
        roots.setdefault(f.mul(y, y), []).append(y)
    return [None, *((x, y) for x in numbers for y in roots.get(curve.right_side(x), ()))]


# ---- fields ----


@every_field
def test_all_pairs_of_the_prime_fields(field):
    p = field.modulus
    door = probe.FieldDoor(field, "portable")
    a, b = (np.repeat(np.arange(p), p), np.tile(np.arange(p), p))
    x, y = field.encode(a.tolist()), field.encode(b.tolist())
    for op, expected in (
        ("add", a + b),
        ("subtract", a - b),
        ("multiply", a * b),
        ("add_to", a + b),
        ("subtract_from", a - b),
        ("multiply_by", a * b),
        ("negate", -a),
        ("twice", 2 * a),
        ("square", a * a),
    ):
        assert np.array_equal(door(op, x, y), field.encode((expected % p).tolist())), op
    assert np.array_equal(door("product", x, y), door("multiply", x, y))
    assert np.array_equal(cpu.multiply(field, x, y), door("multiply", x, y))


@every_field
def test_all_elements_of_the_prime_fields(field):
    p = field.modulus
    door = probe.FieldDoor(field, "portable")
    values = list(range(p))
    rows, canonical = field.encode(values), field.encode_canonical(values)
    inverses = [0, *(pow(v, -1, p) for v in values[1:])]
    assert field.decode(door("inverse", rows)) == inverses
    assert np.array_equal(door("from_canonical", canonical), rows)
    assert np.array_equal(door("to_canonical", rows), canonical)
    assert np.array_equal(cpu.to_montgomery(field, canonical), rows)
    assert np.array_equal(cpu.from_montgomery(field, rows), canonical)
    bases = [v for v in values for _ in range(p)]
    exponents = field.encode_canonical(values * p)
    expected = [pow(v, e, p) for v in values for e in values]
    assert field.decode(door("power", field.encode(bases), exponents)) == expected
    if field.is_scalar:
        assert field.decode(cpu.invert(field, rows)) == inverses
        for base in values:
            assert field.decode(cpu.powers(field, base, 99)) == [pow(base, i, p) for i in range(99)]


def test_all_words_of_one_byte_are_told_reduced_or_not():
    for field in (TOY.fr, TOY.fp):
        rows = np.zeros((256, field.limbs), dtype=np.uint64)
        rows[:, 0] = np.arange(256)
        for i in range(256):
            found = cpu.first_unreduced(field, rows[i : i + 1].copy())
            assert found == (None if i < field.modulus else 0)
        assert cpu.first_unreduced(field, rows) == field.modulus


def test_multiply_subtract_on_every_pair_and_many_third_operands():
    p = TOY.fr.modulus
    a, b = np.repeat(np.arange(p), p), np.tile(np.arange(p), p)
    x, y = TOY.fr.encode(a.tolist()), TOY.fr.encode(b.tolist())
    for c in (0, 1, 50, 96):
        z = np.repeat(TOY.fr.encode([c]), len(a), axis=0)
        expected = TOY.fr.encode(((a * b - c) % p).tolist())
        assert np.array_equal(cpu.multiply_subtract(TOY.fr, x, y, z), expected)


def test_all_elements_of_the_quadratic_field():
    """Squares, inverses, norms of all 6241, and all products with a spread of second operands."""
    p = TOY.fp.modulus
    door = probe.FieldDoor(TOY.fp, "portable", 2)
    c0, c1 = np.repeat(np.arange(p), p), np.tile(np.arange(p), p)

    def rows(a, b):
        return TOY.fp.encode((np.stack([a, b], axis=1) % p).ravel().tolist()).reshape(-1, 2)

    x = rows(c0, c1)
    zero, one = np.zeros_like(c0), np.ones_like(c0)
    assert np.array_equal(door("square", x), rows(c0 * c0 - c1 * c1, 2 * c0 * c1))
    assert np.array_equal(door("negate", x), rows(-c0, -c1))
    assert np.array_equal(door("twice", x), rows(2 * c0, 2 * c1))
    assert np.array_equal(door("conjugate", x), rows(c0, -c1))
    inverse = door("inverse", x)
    assert np.array_equal(door("multiply", x, inverse), rows(np.where(c0 + c1 > 0, one, zero), zero))
    assert not inverse[0].any()
    assert np.array_equal(door("multiply", x, door("conjugate", x)), rows(c0 * c0 + c1 * c1, zero))
    for d0, d1 in itertools.product((0, 1, 2, 39, 40, 77, 78), range(0, p, 6)):
        y = np.repeat(rows(np.array([d0]), np.array([d1])), len(x), axis=0)
        assert np.array_equal(door("multiply", x, y), rows(c0 * d0 - c1 * d1, c0 * d1 + c1 * d0))
        assert np.array_equal(door("add", x, y), rows(c0 + d0, c1 + d1))
        assert np.array_equal(door("subtract", x, y), rows(c0 - d0, c1 - d1))


# ---- points ----


@every_group
def test_the_whole_curve_has_the_order_it_is_said_to_have(group):
    points = whole_curve(group)
    assert len(points) == (97 if group.number == 1 else 63 * 97)
    assert set(multiples(group)) <= set(points)


@every_group
@pytest.mark.parametrize("op", ["add", "add_affine"])
def test_all_sums_of_two_points(group, op):
    """97 x 97 pairs, with unlike z on either side."""
    door = probe.GroupDoor(group, "portable")
    points = multiples(group)
    zs = list(range(1, 79)) if group.number == 1 else [(i % 79, (i * 7 + 1) % 79) for i in range(1, 60)]
    left, right = [p for p in points for _ in points], points * ORDER
    expected = [points[(i + j) % ORDER] for i in range(ORDER) for j in range(ORDER)]
    for z in (None, zs, zs[::-1]):
        a, b = encode(group, left, z), encode(group, right, zs if op == "add" and z else None)
        assert decode(group, door(op, a, b)) == expected


@every_group
def test_all_points_doubled_negated_converted(group):
    """Of the whole curve, not only of the subgroup."""
    curve, points = oracle.weierstrass(group), whole_curve(group)
    door = probe.GroupDoor(group, "portable")
    zs = list(range(1, 79)) if group.number == 1 else [(i % 79, (i * 5 + 2) % 79) for i in range(1, 70)]
    affine, rows = encode(group, points), encode(group, points, zs)
    doubles = [curve.add(p, p) for p in points]
    assert decode(group, door("twice", affine)) == doubles
    assert decode(group, door("doubled", rows)) == doubles
    assert decode(group, door("add_itself", rows)) == doubles
    assert decode(group, door("add_affine", rows, affine)) == doubles
    assert decode(group, door("negate", rows)) == [curve.neg(p) for p in points]
    assert decode(group, door("add", rows, door("negate", encode(group, points, zs[::-1])))) == [None] * len(
        points
    )
    assert decode_affine(group, door("to_affine", rows)) == points
    assert decode(group, door("from_affine", affine)) == points


def test_all_sums_of_a_point_of_the_whole_curve_and_one_of_small_order():
    """G2: points of order 3, 7 and 21 against all 6111."""
    group = TOY.g2
    curve, points = oracle.weierstrass(group), whole_curve(group)
    door = probe.GroupDoor(group, "portable")
    rows = encode(group, points, [(i % 79, 1) for i in range(79)])
    small = next(q for q in (curve.mul(ORDER, p) for p in points) if curve.mul(7, q) and curve.mul(3, q))
    assert curve.mul(21, small) is None  # the group is Z/3 x Z/21 x Z/97
    for k in (1, 3, 7):
        q = curve.mul(k, small)
        other = encode(group, [q] * len(points), [(3, 5)])
        assert decode(group, door("add", rows, other)) == [curve.add(p, q) for p in points]


@every_group
def test_every_point_is_told_inside_or_outside(group):
    curve, inside = oracle.weierstrass(group), set(multiples(group))
    points = whole_curve(group)
    rows = group.encode(points)
    assert cpu.first_bad_point(group, rows, "curve") is None
    for i, p in enumerate(points):
        found = cpu.first_bad_point(group, rows[i : i + 1], "subgroup", threads=1)
        assert found == (None if p in inside else (0, "subgroup"))
    if group.number == 1:  # every pair of coordinates, the curve's points and all others
        for x, y in itertools.product(range(79), repeat=2):
            if (x, y) != (0, 0):
                found = cpu.first_bad_point(group, group.encode([(x, y)]), "curve", threads=1)
                assert found == (None if curve.contains((x, y)) else (0, "curve"))


# ---- sums ----


def tables(group):
    """Rows of all multiples, and of all scalars."""
    return group.encode(multiples(group)), group.scalar.encode_canonical(range(ORDER))


@every_group
def test_all_multiples_of_all_points(group):
    points, (rows, scalars) = multiples(group), tables(group)
    for i in range(ORDER):
        expected = group.encode([points[i * k % ORDER] for k in range(ORDER)])
        assert np.array_equal(cpu.fixed_base(group, rows[i : i + 1], scalars), expected)
        for k in range(ORDER):
            one = cpu.msm(group, rows[i : i + 1], scalars[k : k + 1], threads=1)
            assert np.array_equal(one, expected[k : k + 1])


@every_group
@pytest.mark.parametrize("n", [2, 40, 300])
def test_all_pairs_of_points_summed(group, n):
    """The pair stands among n points; the others are infinity or have scalar 0. Both with scalars 1 and with 96."""
    rows, scalars = tables(group)
    expected = group.encode(multiples(group))
    bases, ks = np.zeros((n, group.limbs), dtype=np.uint64), np.zeros((n, 4), dtype=np.uint64)
    bases[: n // 2], ks[n // 2 :] = rows[5], scalars[9]
    first, second = n // 3, n - 1
    bases[n // 2 :] = 0
    sign = 1
    for i, j in itertools.product(range(ORDER), repeat=2):
        sign = -sign
        bases[first], bases[second] = rows[i], rows[j]
        ks[first] = ks[second] = scalars[sign % ORDER]
        k = sign * (i + j) % ORDER
        assert np.array_equal(cpu.msm(group, bases, ks, threads=1), expected[k : k + 1]), (i, j, sign)


@every_group
@pytest.mark.parametrize("n", [2, 33, 129])
def test_all_pairs_of_scalars(group, n):
    """All (k, l) for P and -P, P and P, and two others."""
    rows, scalars = tables(group)
    expected = group.encode(multiples(group))
    for i, j in ((1, 96), (11, 11), (1, 2), (60, 61)):
        bases, ks = np.zeros((n, group.limbs), dtype=np.uint64), np.zeros((n, 4), dtype=np.uint64)
        bases[0], bases[n - 1] = rows[i], rows[j]
        for k, m in itertools.product(range(0, ORDER, 1 if n == 33 else 5), range(ORDER)):
            ks[0], ks[n - 1] = scalars[k], scalars[m]
            total = (i * k + j * m) % ORDER
            assert np.array_equal(cpu.msm(group, bases, ks, threads=1), expected[total : total + 1])


@every_group
def test_random_sums_of_every_length(group):
    """Points repeat, cancel and vanish all the time in a group of 97."""
    rows, scalars = tables(group)
    expected = group.encode(multiples(group))
    random = np.random.default_rng(97)
    for n in [*range(150), 255, 256, 257, 1000, 4096, 10000]:
        i, k = random.integers(0, ORDER, n), random.integers(0, ORDER, n)
        total = int(np.sum(i * k)) % ORDER
        assert np.array_equal(cpu.msm(group, rows[i], scalars[k]), expected[total : total + 1]), n


# ---- transforms ----


@pytest.mark.parametrize("log_n", range(6))
def test_all_transforms_of_the_toy_field(log_n):
    """All 97^n inputs for n = 1 and 2; every unit vector times every scalar, and random ones, up to n = 32."""
    f, r, n = TOY.fr, ORDER, 1 << log_n
    encoded = f.encode(range(r))
    w = oracle.root_of_unity(r, 5, log_n)
    for root in {pow(w, k, r) for k in range(1, max(n, 2), 2)}:  # every primitive n-th root
        if n <= 2:
            inputs = np.array(list(itertools.product(range(r), repeat=n)))
        else:
            units = np.array([v * np.eye(n, dtype=int)[j] for j in range(n) for v in (1, 2, 48, 96)])
            inputs = np.concatenate([units, np.random.default_rng(log_n).integers(0, r, (40, n))])
        matrix = np.array([[pow(root, j * k, r) for k in range(n)] for j in range(n)])
        order = np.array(oracle.bit_reversed(range(n)))
        twiddles = cpu.twiddles(f, root, n)
        for values, expected in zip(inputs, inputs @ matrix % r, strict=True):
            data = encoded[values]
            cpu.dif(f, data, twiddles, threads=1)
            assert np.array_equal(data, encoded[expected[order]])
            data = encoded[values[order]]
            cpu.dit(f, data, twiddles, threads=1)
            assert np.array_equal(data, encoded[expected])

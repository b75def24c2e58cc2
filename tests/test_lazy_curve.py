# SPDX-License-Identifier: Apache-2.0
"""Products of lazy residues and sums of points over them, the GPU's, the carry flag emulated: values and bounds.

Against Python integers, and for points against the canonical templates of `curve.cuh`.
"""

from __future__ import annotations

import itertools
import random

import numpy as np
import oracle
import probe
import pytest
from references import CURVES, GROUPS, by_name
from test_curve import decode, encode, pairs, some_points, some_zs

from pinzk.curves import Field, Words

FIELDS = [c.fp for c in CURVES]
every_field = pytest.mark.parametrize("field", FIELDS, ids=by_name)
every_group = pytest.mark.parametrize("group", GROUPS, ids=by_name)


def rows(values: list[int], field: Field) -> Words:
    raw = b"".join(v.to_bytes(field.nbytes, "little") for v in values)
    return np.frombuffer(raw, dtype=np.uint64).reshape(-1, field.limbs)


def edges(field: Field) -> list[int]:
    """Residues below 2p where carries and bounds are met."""
    p, top = field.modulus, 1 << 2 * field.modulus.bit_length()
    ones = [(1 << k) - 1 for k in (32, 64, p.bit_length() - 1)]
    values = [
        0,
        1,
        p - 1,
        p,
        p + 1,
        2 * p - 2,
        2 * p - 1,
        *ones,
        (0x80000000_80000000 * (top // ((1 << 64) - 1))) % (2 * p),
    ]
    return sorted({v for v in values if v < 2 * p})


def quadruples(field: Field, n: int = 4000) -> list[tuple[int, ...]]:
    """All of the edges by four, and random ones, of which some near the top."""
    rng, p, e = random.Random(field.name), field.modulus, edges(field)
    near = lambda: 2 * p - 1 - rng.randrange(1 + p // 1000) if rng.random() < 0.3 else rng.randrange(2 * p)  # noqa: E731
    some = list(itertools.product(e, repeat=4))
    return rng.sample(some, min(len(some), 6000)) + [tuple(near() for _ in range(4)) for _ in range(n)]


# what each product may be given, in p^2, and the limit of its result in p
BOUNDS = {
    "product": 4,
    "product_twice_b": 8,
    "square": 4,
    "square_canonical": 1,
    "dot_2": 8,
    "dot_4": 16,
    "cross": 8,
}


@every_field
@pytest.mark.parametrize("op", list(BOUNDS))
def test_product_is_right_modulo_p_and_stays_below_2p(field: Field, op: str) -> None:
    p = field.modulus
    back = pow(1 << 8 * field.nbytes, -1, p)
    given = quadruples(field)
    got = field.decode_canonical(probe.product_op(field, op, rows([v for q in given for v in q], field)))
    want = {
        "product": lambda a, b, c, d: a * b,
        "product_twice_b": lambda a, b, c, d: a * 2 * b,
        "square": lambda a, b, c, d: a * a,
        "square_canonical": lambda a, b, c, d: a * a,
        "dot_2": lambda a, b, c, d: a * b + c * d,
        "dot_4": lambda a, b, c, d: a * b + c * d + a * c + b * d,
        "cross": lambda a, b, c, d: a * b - c * d,
    }[op]
    assert [v % p for v in got] == [want(*q) * back % p for q in given]
    assert max(got) < 2 * p
    # the proven bound of the interleaved product, where nothing is subtracted behind it
    proven = BOUNDS[op] * p / (1 << 8 * field.nbytes) + 1
    if proven <= 2:
        assert max(got) / p <= proven
    if field.limbs > 1 and op != "square_canonical":
        assert max(got) > p, "residues above p are not met: the test is idle"


@every_field
def test_inverse_is_right_and_zero_for_zero(field: Field) -> None:
    p, r = field.modulus, 1 << 8 * field.nbytes
    given = quadruples(field)[::97]
    array = rows([v for q in given for v in q], field)
    got = field.decode_canonical(probe.product_op(field, "inverse", array))
    assert max(got) < 2 * p
    assert [v % p for v in got] == [r * r * pow(q[0], p - 2, p) % p for q in given]


@every_field
def test_zero_is_seen_in_both_its_forms(field: Field) -> None:
    p = field.modulus
    given = quadruples(field)
    array = rows([v for q in given for v in q], field)
    exact = field.decode_canonical(probe.product_op(field, "is_zero", array))
    assert exact == [int(q[0] % p == 0) for q in given]
    quick = field.decode_canonical(probe.product_op(field, "may_be_zero", array))
    assert all(m >= e for e, m in zip(exact, quick, strict=True))
    assert quick.count(1) < len(quick)
    reduced = field.decode_canonical(probe.product_op(field, "canonical", array))
    assert reduced == [q[0] % p for q in given]


@every_field
@pytest.mark.parametrize("op", probe.PAIR_OPS)
def test_operation_of_fp2_is_right_and_stays_below_2p(field: Field, op: str) -> None:
    p = field.modulus
    back = pow(1 << 8 * field.nbytes, -1, p)
    flat = [v for q in quadruples(field)[:: 7 if op == "inverse" else 1] for v in q]
    flat = flat[: len(flat) // 8 * 8]
    got = field.decode_canonical(probe.pair_op(field, op, rows(flat, field)).reshape(-1, field.limbs))
    assert max(got) < 2 * p

    def times(a, b):
        return ((a[0] * b[0] - a[1] * b[1]) * back, (a[0] * b[1] + a[1] * b[0]) * back)

    def inverse(a):
        over = pow(a[0] * a[0] + a[1] * a[1], p - 2, p) * pow(back, -2, p)
        return (a[0] * over, -a[1] * over)

    for i in range(len(flat) // 8):
        a, b, c, d = ((flat[8 * i + 2 * k], flat[8 * i + 2 * k + 1]) for k in range(4))
        want = {
            "product": lambda: times(a, b),  # noqa: B023
            "square": lambda: times(a, a),  # noqa: B023
            "cross": lambda: tuple(x - y for x, y in zip(times(a, b), times(c, d), strict=True)),  # noqa: B023
            "inverse": lambda: inverse(a),  # noqa: B023
            "add": lambda: (a[0] + b[0], a[1] + b[1]),  # noqa: B023
            "subtract": lambda: (a[0] - b[0], a[1] - b[1]),  # noqa: B023
        }[op]()
        assert [v % p for v in got[2 * i : 2 * i + 2]] == [v % p for v in want]


# ---- sums ----


def lifted(group, array: Words, seed: int) -> Words:
    """Some coordinates with p added, but of infinity, whose words are zero."""
    rng, p, base = random.Random(seed), group.base.modulus, group.base
    per = 2 * group.number * 2
    values = base.decode_canonical(array.reshape(-1, base.limbs))
    out: list[int] = []
    for i in range(0, len(values), per):
        row = values[i : i + per]
        out += [v + p * rng.randrange(2) for v in row] if any(row) else row
    return rows(out, base).reshape(array.shape)


def canonical(group, array: Words) -> Words:
    """The same points, coordinates below p; none was 2p or more."""
    values = group.base.decode_canonical(array.reshape(-1, group.base.limbs))
    assert max(values) < 2 * group.base.modulus
    return rows([v % group.base.modulus for v in values], group.base).reshape(array.shape)


def infinities_are_blank(group, array: Words) -> bool:
    zz = array[:, group.limbs : group.limbs * 3 // 2]
    lazy = canonical(group, array)[:, group.limbs : group.limbs * 3 // 2]
    return bool((zz.any(axis=1) == lazy.any(axis=1)).all() and not array[~zz.any(axis=1)].any())


@every_group
@pytest.mark.parametrize("op", ["add", "add_affine", "subtract_affine"])
def test_addition_is_complete(group, op: str) -> None:
    """Different, equal and opposite points, infinity on either side, coordinates with and without p added."""
    curve = oracle.weierstrass(group)
    left, right, zs, zs2 = pairs(group)
    other = [curve.neg(q) for q in right] if op == "subtract_affine" else right
    expected = [curve.add(p, q) for p, q in zip(left, other, strict=True)]
    for seed, z in enumerate((None, zs, zs[4:])):
        a, b = encode(group, left, z), encode(group, right, None if op != "add" or z is None else zs2)
        if op != "add":
            b[:, group.limbs :] = 0
        got = probe.sum_op(
            group, op, lifted(group, a, seed), lifted(group, b, seed + 9) if op == "add" else b
        )
        assert decode(group, canonical(group, got)) == expected
        assert infinities_are_blank(group, got)


@every_group
def test_equal_points_with_unlike_coordinates_double(group) -> None:
    curve = oracle.weierstrass(group)
    points, zs = some_points(group), some_zs(group)
    left = [p for p in points for _ in zs]
    a, b = encode(group, left, zs), encode(group, left, zs[3:] + zs[:3])
    got = probe.sum_op(group, "add", lifted(group, a, 1), lifted(group, b, 2))
    assert decode(group, canonical(group, got)) == [curve.add(p, p) for p in left]
    doubled = probe.sum_op(group, "doubled", lifted(group, a, 3), b)
    assert decode(group, canonical(group, doubled)) == [curve.add(p, p) for p in left]
    assert infinities_are_blank(group, doubled)


@every_group
def test_conversions_keep_the_point(group) -> None:
    points, zs = some_points(group), some_zs(group)
    a = encode(group, points, zs[: len(points)])
    assert np.array_equal(probe.sum_op(group, "canonical", lifted(group, a, 4), a), a)
    affine = encode(group, points)
    affine[:, group.limbs :] = 0
    got = probe.sum_op(group, "from_affine", a, affine)
    assert decode(group, got) == points
    assert infinities_are_blank(group, got)


def test_sums_of_a_toy_curve_are_all_right() -> None:
    """Every pair of points of the group with 97, every lift of the accumulator's x and y, affine and general."""
    group = GROUPS[4]
    assert group.name == "toy.g1"
    p, door = group.base.modulus, probe.GroupDoor(group, "portable")
    curve = oracle.weierstrass(group)
    points = [None, group.generator()]
    while len(points) < 97:
        points.append(curve.add(points[-1], group.generator()))
    left, right = zip(*itertools.product(points, points), strict=True)
    a, b = encode(group, left, [1, 5, 7, 78, 33]), encode(group, right)
    b[:, group.limbs :] = 0
    want = decode(group, door("add_affine", a, b))
    for lift in itertools.product((0, p), repeat=4):
        shifted = a + np.array(lift, dtype=np.uint64) * (a.any(axis=1, keepdims=True)).astype(np.uint64)
        got = probe.sum_op(group, "add_affine", shifted, b)
        assert decode(group, canonical(group, got)) == want
        assert infinities_are_blank(group, got)

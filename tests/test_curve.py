# SPDX-License-Identifier: Apache-2.0
"""The group law of the templates, affine and XYZZ, operation by operation, against chord and tangent in Python integers.

XYZZ coordinates of one point are many; operands come as (x z^2, y z^3, z^2, z^3) for several z, infinity also with stray
X and Y. Operands are in the subgroup of order r and outside.
"""

from __future__ import annotations

import numpy as np
import oracle
import probe
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_ecc import optimized_bls12_381, optimized_bn128
from references import GROUPS, REAL_GROUPS, by_name, multiple_of_generator, random_ints

from pinzk.curves import BN254

DOORS = [probe.GroupDoor(g, m) for g in GROUPS for m in probe.machines(g.curve_name)]
every_door = pytest.mark.parametrize("door", DOORS, ids=by_name)
every_group = pytest.mark.parametrize("group", GROUPS, ids=by_name)


def encode(group, points, zs=None) -> np.ndarray:
    """Rows X, Y, ZZ, ZZZ; z is a number of the base field for each point, 1 if not given; infinity is all zeros."""
    f = oracle.base_field(group)
    flat: list[int] = []
    for i, p in enumerate(points):
        row = [f.zero] * 4
        if p is not None:
            z = f.one if zs is None else zs[i % len(zs)]
            zz = f.mul(z, z)
            zzz = f.mul(zz, z)
            row = [f.mul(p[0], zz), f.mul(p[1], zzz), zz, zzz]
        flat += row if group.number == 1 else [c for pair in row for c in pair]
    return group.base.encode(flat).reshape(-1, 2 * group.limbs)


def coordinates(group, rows) -> list[tuple]:
    assert all(v < group.base.modulus for v in group.base.decode_canonical(rows))
    flat = group.base.decode(rows)
    if group.number == 2:
        flat = list(zip(flat[::2], flat[1::2], strict=True))
    return [tuple(flat[i : i + 4]) for i in range(0, len(flat), 4)]


def decode(group, rows) -> list:
    """Points of XYZZ rows, their invariant checked."""
    f = oracle.base_field(group)
    out: list = []
    for x, y, zz, zzz in coordinates(group, rows):
        assert f.mul(f.mul(zz, zz), zz) == f.mul(zzz, zzz)
        out.append(None if zz == f.zero else (f.mul(x, f.inverse(zz)), f.mul(y, f.inverse(zzz))))
    return out


def decode_affine(group, rows) -> list:
    f = oracle.base_field(group)
    assert all(c[2:] == (f.zero, f.zero) for c in coordinates(group, rows))
    return group.decode(np.ascontiguousarray(rows[:, : group.limbs]))


def some_points(group) -> list:
    """Infinity, small multiples of G and their opposites, others of the subgroup, and points outside of it."""
    curve = oracle.weierstrass(group)
    g = group.generator()
    r = group.scalar.modulus
    points = [None, g, curve.neg(g), curve.add(g, g), curve.mul(3, g), curve.neg(curve.mul(3, g))]
    points += [multiple_of_generator(group, k) for k in random_ints(r, 2, 1)]
    outside = curve.points_near(2)
    points += [next(outside), curve.neg(next(outside))]
    return points


def some_zs(group) -> list:
    """Numbers of the base field to scale coordinates with."""
    p = group.base.modulus
    raw = [1 + v % (p - 1) for v in random_ints(p, 22, 2)]
    return raw[:11] if group.number == 1 else list(zip(raw[:11], raw[11:], strict=True))


def pairs(group):
    """All pairs of points, and for each side a z."""
    points, zs = some_points(group), some_zs(group)
    left, right = [p for p in points for _ in points], points * len(points)
    return left, right, zs, zs[::-1]


# ---- parameters ----


@every_group
def test_the_generator_has_order_r_and_lies_on_the_curve(group):
    curve = oracle.weierstrass(group)
    b, generator = probe.group_constants(group)
    assert group.base.decode(b) == ([curve.b] if group.number == 1 else list(curve.b))
    assert group.decode(generator) == [group.generator()]
    assert curve.contains(group.generator())
    assert curve.mul(group.scalar.modulus, group.generator()) is None


@pytest.mark.parametrize("group", REAL_GROUPS, ids=by_name)
def test_parameters_are_those_of_py_ecc(group):
    lib = optimized_bn128 if group.curve_name == "bn254" else optimized_bls12_381
    g, b = (lib.G1, lib.b) if group.number == 1 else (lib.G2, lib.b2)
    assert lib.curve_order == group.scalar.modulus
    assert lib.field_modulus == group.base.modulus
    assert from_py_ecc(lib, g) == group.generator()
    assert (int(b) if group.number == 1 else tuple(int(c) for c in b.coeffs)) == oracle.weierstrass(group).b


# ---- operations ----


@every_door
@pytest.mark.parametrize("op", ["add", "add_affine"])
def test_addition_is_complete(door, op):
    """Every pair of points: different, equal, opposite, infinity on either side; inputs scaled by several z."""
    group = door.group
    curve = oracle.weierstrass(group)
    left, right, zs, zs2 = pairs(group)
    expected = [curve.add(p, q) for p, q in zip(left, right, strict=True)]
    for z in (None, zs, zs[4:]):
        a, b = encode(group, left, z), encode(group, right, None if op == "add_affine" or z is None else zs2)
        if op == "add_affine":
            b[:, group.limbs :] = 0
        assert decode(group, door(op, a, b)) == expected


@every_door
def test_equal_points_with_unlike_coordinates_double(door):
    """P + P where h = 0 must be seen across different z."""
    group = door.group
    curve = oracle.weierstrass(group)
    points, zs = some_points(group), some_zs(group)
    left = [p for p in points for _ in zs]
    a, b = encode(group, left, zs), encode(group, left, zs[3:] + zs[:3])
    assert decode(group, door("add", a, b)) == [curve.add(p, p) for p in left]
    opposite = encode(group, [curve.neg(p) for p in left], zs[5:] + zs[:5])
    out = door("add", a, opposite)
    assert decode(group, out) == [None] * len(left)


@every_door
def test_doubling_is_adding_to_itself(door):
    group = door.group
    curve = oracle.weierstrass(group)
    points = some_points(group)
    expected = [curve.add(p, p) for p in points]
    for zs in (None, some_zs(group)):
        rows = encode(group, points, zs)
        assert decode(group, door("doubled", rows)) == expected
        assert decode(group, door("add_itself", rows)) == expected  # one object on both sides
        assert decode(group, door("add", rows, rows.copy())) == expected
    assert decode(group, door("twice", encode(group, points))) == expected


@every_door
def test_negation_and_the_affine_forms(door):
    group = door.group
    curve = oracle.weierstrass(group)
    points, zs = some_points(group), some_zs(group)
    rows, affine = encode(group, points, zs), encode(group, points)
    assert decode(group, door("negate", rows)) == [curve.neg(p) for p in points]
    assert decode_affine(group, door("negate_affine", affine)) == [curve.neg(p) for p in points]
    assert decode(group, door("from_affine", affine)) == points
    assert decode_affine(group, door("to_affine", rows)) == points


@every_door
def test_infinity_is_zz_zero_whatever_x_and_y(door):
    group = door.group
    points = [p for p in some_points(group) if p is not None]
    stray = encode(group, points, some_zs(group))
    stray[:, group.limbs :] = 0  # ZZ = ZZZ = 0, X and Y left over
    rows = encode(group, points[::-1], some_zs(group))
    nothing = [None] * len(points)
    assert decode(group, door("add", stray, rows)) == points[::-1]
    assert decode(group, door("add", rows, stray)) == points[::-1]
    assert decode(group, door("add", stray, stray[::-1].copy())) == nothing
    assert decode(group, door("add_affine", stray, encode(group, points[::-1]))) == points[::-1]
    for op in ("doubled", "negate", "add_itself"):
        assert decode(group, door(op, stray)) == nothing
    assert not door("to_affine", stray).any()


@every_door
def test_multiples_are_those_of_the_oracle(door):
    """Scalars of 256 bits, reduced or not: 0, 1, r - 1, r, r + 1, 2^256 - 1; on points of any order."""
    group = door.group
    curve, r = oracle.weierstrass(group), group.scalar.modulus
    top = (1 << 256) - 1
    points = [None, group.generator(), some_points(group)[-1]]
    scalars = [0, 1, 2, 3, r - 1, r, r + 1, (1 << 64) - 1, 1 << 64, top, *random_ints(1 << 256, 2, 3)]
    cases = [(p, k) for p in points for k in scalars]
    words = np.zeros((len(cases), 2 * group.limbs), dtype=np.uint64)
    words[:, :4] = np.frombuffer(b"".join(k.to_bytes(32, "little") for _, k in cases), np.uint64).reshape(
        -1, 4
    )
    out = door("times", encode(group, [p for p, _ in cases], some_zs(group)), words)
    assert decode(group, out) == [curve.mul(k, p) for p, k in cases]


# ---- laws ----


@pytest.mark.parametrize("door", [d for d in DOORS if d.group.curve_name != "toy"], ids=by_name)
@given(data=st.data())
def test_the_group_laws(door, data):
    group = door.group
    points = st.sampled_from(some_points(group))
    z = st.sampled_from(some_zs(group))
    a, b, c = (encode(group, [data.draw(points, label=n)], [data.draw(z, label="z")]) for n in "abc")

    def same(x, y):
        return decode(group, x) == decode(group, y)

    assert same(door("add", a, b), door("add", b, a))
    assert same(door("add", door("add", a, b), c), door("add", a, door("add", b, c)))
    assert same(door("doubled", door("add", a, b)), door("add", door("doubled", a), door("doubled", b)))
    assert same(door("negate", door("add", a, b)), door("add", door("negate", a), door("negate", b)))
    assert decode(group, door("add", a, door("negate", a))) == [None]
    assert same(door("from_affine", door("to_affine", a)), a)
    assert same(door("add_affine", a, door("to_affine", b)), door("add", a, b))


# ---- py_ecc ----


def from_py_ecc(lib, p):
    if lib.is_inf(p):
        return None
    x, y = lib.normalize(p)
    return (
        (int(x), int(y))
        if not hasattr(x, "coeffs")
        else tuple(tuple(int(c) for c in v.coeffs) for v in (x, y))
    )


@pytest.mark.parametrize("door", [d for d in DOORS if d.group.curve_name != "toy"], ids=by_name)
def test_operations_are_those_of_py_ecc(door):
    group = door.group
    lib = optimized_bn128 if group.curve_name == BN254.name else optimized_bls12_381
    g = lib.G1 if group.number == 1 else lib.G2
    theirs = [lib.multiply(g, k) for k in (1, 2, 3, 12345, group.scalar.modulus - 3)]
    points = [from_py_ecc(lib, p) for p in theirs]
    left, right = [p for p in points for _ in points], points * len(points)
    sums = [from_py_ecc(lib, lib.add(p, q)) for p in theirs for q in theirs]
    zs = some_zs(group)
    assert decode(group, door("add", encode(group, left, zs), encode(group, right, zs[::-1]))) == sums
    doubles = [from_py_ecc(lib, lib.double(p)) for p in theirs]
    assert decode(group, door("doubled", encode(group, points, zs))) == doubles

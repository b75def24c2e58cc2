# SPDX-License-Identifier: Apache-2.0
"""Checks of points at load: range, curve and subgroup, and the index of the first point that fails."""

from __future__ import annotations

import functools

import numpy as np
import oracle
import pytest
import references
from references import GROUPS, REAL_GROUPS, by_name, known_multiples, multiple_of_generator, random_ints

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254

every_group = pytest.mark.parametrize("group", GROUPS, ids=by_name)

# prime factors of the cofactors
FACTORS = {
    "bls12_381.g1": [3, 11, 10177, 859267, 52437899],
    "bls12_381.g2": [13, 23, 2713, 11953, 262069],
    "bn254.g2": [10069, 5864401, 1875725156269, 197620364512881247228717050342013327560683201906968909],
    "toy.g2": [3, 7],
}
with_cofactor = pytest.mark.parametrize("group", [g for g in GROUPS if g.name in FACTORS], ids=by_name)


@functools.cache
def curve_order(group) -> int:
    """Points of the whole curve, by the trace of Frobenius over F_p (and its square), checked on points below."""
    q, r = group.base.modulus, group.scalar.modulus
    if group.name in ("bn254.g1", "toy.g1"):
        return r
    if group.name == "toy.g2":
        return 63 * 97
    if group.name == "bn254.g2":
        return r * (2 * q - r)
    x = -0xD201000000010000  # BLS12-381's parameter
    if group.number == 1:
        return r * ((x - 1) ** 2 // 3)
    return r * ((x**8 - 4 * x**7 + 5 * x**6 - 4 * x**4 + 6 * x**3 - 4 * x**2 - 4 * x + 13) // 9)


@functools.cache
def outsiders(group) -> list:
    """Points on the curve and not in the subgroup: random, of small order, and such a one added to the generator."""
    curve, order, r = oracle.weierstrass(group), curve_order(group), group.scalar.modulus
    points: list = []
    candidates = curve.points_near(2)
    while len(points) < 3:
        p = next(candidates)
        assert curve.mul(order, p) is None
        if curve.mul(r, p) is not None:
            points.append(p)
    for factor in FACTORS[group.name]:
        rest = order // factor
        assert order % factor == 0
        while rest % factor == 0:
            rest //= factor
        small = None
        while small is None:
            small = curve.mul(rest, next(candidates))
            while small is not None and curve.mul(factor, small) is not None:
                small = curve.mul(factor, small)
        points += [small, curve.add(small, group.generator())]
    return points


@every_group
@pytest.mark.parametrize("check", ["range", "curve", "subgroup"])
@pytest.mark.parametrize("n", [0, 1, 2, 33, 1025])
def test_points_of_the_subgroup_pass(group, check, n):
    _, rows = known_multiples(group, 1025)
    assert cpu.first_bad_point(group, rows[:n].copy(), check) is None


@every_group
@pytest.mark.parametrize("check", ["range", "curve", "subgroup"])
def test_infinity_passes(group, check):
    assert cpu.first_bad_point(group, np.zeros((3, group.limbs), dtype=np.uint64), check) is None


@every_group
@pytest.mark.parametrize("check", ["curve", "subgroup"])
def test_edge_multiples_of_the_generator_pass(group, check):
    r = group.scalar.modulus
    points = [multiple_of_generator(group, k % r) for k in (0, 1, 2, r - 1, r - 2, r // 2, r // 2 + 1)]
    assert cpu.first_bad_point(group, group.encode(points), check) is None


def test_the_endomorphism_of_g1_of_bls12_381_kills_nothing_else():
    """phi^2 + phi + 1 = 0, so z^2 + phi has degree z^4 - z^2 + 1 = r, and r points in its kernel (G2: test_pairing.py)."""
    z, r = -0xD201000000010000, BLS12_381.fr.modulus
    assert z**4 - z**2 + 1 == r
    assert curve_order(BLS12_381.g1) % r**2 != 0


@with_cofactor
def test_points_outside_the_subgroup_are_found(group):
    """Random ones and ones of small order: each is on the curve, and each alone fails the subgroup."""
    for p in outsiders(group):
        rows = group.encode([p])
        assert cpu.first_bad_point(group, rows, "range") is None
        assert cpu.first_bad_point(group, rows, "curve") is None
        assert cpu.first_bad_point(group, rows, "subgroup") == (0, "subgroup")


@every_group
def test_points_with_x_zero_are_told_inside_or_outside(group):
    """They have order 3 (BLS12-381 G1: (0, 2)), and the cube roots of unity do not move them."""
    curve, f, r = oracle.weierstrass(group), oracle.base_field(group), group.scalar.modulus
    y = f.sqrt(curve.b)
    for p in [] if y is None else [(f.zero, y), (f.zero, f.neg(y))]:
        inside = curve.mul(r, p) is None
        found = cpu.first_bad_point(group, group.encode([p]), "subgroup")
        assert found == (None if inside else (0, "subgroup"))
    assert (y is None) == (group.name not in ("bls12_381.g1", "toy.g2"))
    assert curve_order(group) % 2 == 1  # so that no point has y = 0


@with_cofactor
@pytest.mark.parametrize("place", [0, 1, 15, 16, 17, 99, 199])
def test_the_index_of_the_first_outsider_is_given(group, place):
    rows = known_multiples(group, 1025)[1][:200].copy()
    bad = group.encode(outsiders(group))
    rows[place] = bad[0]
    for threads in (1, 3):
        assert cpu.first_bad_point(group, rows, "subgroup", threads=threads) == (place, "subgroup")
    rows[place + 1 :] = bad[1 % len(bad)]
    assert cpu.first_bad_point(group, rows, "subgroup", threads=3) == (place, "subgroup")
    assert cpu.first_bad_point(group, rows, "curve") is None


@every_group
def test_points_off_the_curve_are_found(group):
    curve, f = oracle.weierstrass(group), oracle.base_field(group)
    _, rows = known_multiples(group, 1025)
    n = len(rows)
    x, y = group.decode(rows[5:6])[0]
    off = [(x, f.add(y, f.one)), (f.add(x, f.one), y), (y, x), (f.zero, f.one), (f.one, f.zero), (x, f.zero)]
    off = [p for p in off if not curve.contains(p)]
    assert len(off) >= 3
    for p in off:
        row = group.encode([p])
        assert cpu.first_bad_point(group, row, "range") is None
        for check in ("curve", "subgroup"):
            assert cpu.first_bad_point(group, row, check) == (0, "curve")
        for place in (0, 500, 1023, 1024, n - 1):
            spoiled = rows.copy()
            spoiled[place] = row
            assert cpu.first_bad_point(group, spoiled, "curve", threads=2) == (place, "curve")


@pytest.mark.parametrize("group", REAL_GROUPS, ids=by_name)
def test_points_of_the_other_sextic_twists_are_off_the_curve(group):
    """Small errors in b: y^2 = x^3 + b' has points too, none of them may pass."""
    f = oracle.base_field(group)
    curve = oracle.weierstrass(group)
    for b in (f.add(curve.b, f.one), f.neg(curve.b), f.mul(curve.b, curve.b)):
        p = next(oracle.Weierstrass(f, b).points_near(5))
        assert cpu.first_bad_point(group, group.encode([p]), "curve") == (0, "curve")


@every_group
def test_coordinates_that_are_not_reduced_are_found(group):
    """Any of the coordinates, p itself, p + x (the same element), all ones; whatever the check."""
    p, limbs = group.base.modulus, group.base.limbs
    rows = known_multiples(group, 1025)[1][:300].copy()
    coordinates = group.limbs // limbs
    for place in (0, 7, 255, 256, 299):
        for c in range(coordinates):
            words = slice(c * limbs, (c + 1) * limbs)
            value = group.base.decode_canonical(rows[place : place + 1, words])[0]
            for bad in (p, p + value, (1 << 64 * limbs) - 1):
                spoiled = rows.copy()
                spoiled[place, words] = np.frombuffer(bad.to_bytes(8 * limbs, "little"), dtype=np.uint64)
                for check in ("range", "curve"):
                    assert cpu.first_bad_point(group, spoiled, check) == (place, "coordinate")
    spoiled[place + 1 :] = spoiled[place]
    assert cpu.first_bad_point(group, spoiled, "subgroup") == (place, "coordinate")


@every_group
def test_the_first_fault_wins_whatever_its_kind(group):
    rows = known_multiples(group, 1025)[1][:100].copy()
    f = oracle.base_field(group)
    x, y = group.decode(rows[:1])[0]
    off = group.encode([(x, f.add(y, f.one))])
    rows[60], rows[40] = off, ~np.uint64(0)
    assert cpu.first_bad_point(group, rows, "subgroup") == (40, "coordinate")
    rows[20] = off
    assert cpu.first_bad_point(group, rows, "subgroup") == (20, "curve")
    assert cpu.first_bad_point(group, rows, "range") == (40, "coordinate")
    if group.name in FACTORS:
        rows[10] = group.encode(outsiders(group)[:1])
        assert cpu.first_bad_point(group, rows, "subgroup") == (10, "subgroup")
        assert cpu.first_bad_point(group, rows, "curve") == (20, "curve")


@pytest.mark.parametrize("group", oracle.groups(BLS12_381), ids=by_name)
def test_py_arkworks_agrees_on_the_subgroup(group):
    cls = references.arkworks_class(group)

    def parsed(p):
        flat = p if group.number == 1 else (*p[0], *p[1])
        return cls.from_xy_bytes_unchecked_be(b"".join(v.to_bytes(48, "big") for v in flat))

    insiders = [multiple_of_generator(group, k) for k in random_ints(group.scalar.modulus, 3, 4)]
    for p in [*insiders, *outsiders(group)]:
        ours = cpu.first_bad_point(group, group.encode([p]), "subgroup") is None
        assert ours == parsed(p).is_in_subgroup() == (p in insiders)


def test_an_unknown_check_or_shape_is_refused():
    rows = np.zeros((2, 8), dtype=np.uint64)
    with pytest.raises(ValueError, match="check must be"):
        cpu.first_bad_point(BN254.g1, rows, "full")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shape"):
        cpu.first_bad_point(BN254.g2, rows)

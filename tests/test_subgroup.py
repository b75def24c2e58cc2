# SPDX-License-Identifier: Apache-2.0
"""The subgroup check of points: by endomorphism, the same as a product by r. `test_pairing.py` has more of G2."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import oracle
import pytest
from references import TOY

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254, Curve, Group

SEED = -0xD201000000010000
COFACTOR = (SEED - 1) ** 2 // 3  # of G1 of BLS12-381
GROUPS = [BN254.g1, BN254.g2, BLS12_381.g1, BLS12_381.g2]


def fault(group: Group, point: Any) -> str | None:
    bad = cpu.first_bad_point(group, group.encode([point]), "subgroup")
    return None if bad is None else bad[1]


def test_the_degree_on_g1_of_bls12_381_is_r() -> None:
    # phi^2 + phi + 1 = 0, so z^2 + phi has degree z^4 - z^2 + 1: its kernel is the subgroup and nothing else
    z, r, p = SEED, BLS12_381.fr.modulus, BLS12_381.fp.modulus
    assert z**4 - z**2 + 1 == r
    assert COFACTOR * r == p - z  # points of the curve
    assert COFACTOR % r != 0


def test_points_of_small_order_in_g1_of_bls12_381() -> None:
    group, r = BLS12_381.g1, BLS12_381.fr.modulus
    curve = oracle.weierstrass(group)
    points = list(itertools.islice(curve.points_near(1), 2))
    outside = [(0, 2), (0, BLS12_381.fp.modulus - 2), *points, *(curve.mul(r, p) for p in points)]
    for prime in (11, 10177, 859267):
        assert COFACTOR % prime == 0
        low = next(q for q in (curve.mul(r * COFACTOR // prime**k, p) for p in points for k in (1, 2)) if q)
        outside += [low, curve.neg(low), curve.add(low, group.generator())]
    for point in outside:
        assert curve.contains(point)
        assert curve.mul(r, point) is not None
        assert fault(group, point) == "subgroup"
    for point in points:
        assert fault(group, curve.mul(COFACTOR, point)) is None


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
def test_multiples_of_the_generator_pass(group: Group) -> None:
    r = group.scalar.modulus
    rng = np.random.default_rng(11)
    scalars = [
        1,
        2,
        3,
        r - 1,
        r - 2,
        (r + 1) // 2,
        *(int.from_bytes(rng.bytes(31), "big") for _ in range(200)),
    ]
    points = cpu.fixed_base(group, cpu.generator(group), group.scalar.encode_canonical(scalars))
    points[100] = 0  # infinity is in
    assert cpu.first_bad_point(group, points, "subgroup") is None


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.name)
def test_random_points_of_the_curve(group: Group) -> None:
    curve = oracle.weierstrass(group)
    for point in itertools.islice(curve.points_near(1000), 5):
        inside = curve.mul(group.scalar.modulus, point) is None
        assert inside == (group.name == "bn254.g1")
        assert fault(group, point) == (None if inside else "subgroup")


@pytest.mark.parametrize("group", [TOY.g1, TOY.g2], ids=lambda g: g.name)
def test_every_point_of_the_toy_curve(group: Group) -> None:
    curve, p, r = oracle.weierstrass(group), group.base.modulus, group.scalar.modulus
    xs: Any = range(p) if group.number == 1 else itertools.product(range(p), repeat=2)
    counted = 1
    for x in xs:
        y = curve.field.sqrt(curve.right_side(x))
        if y is None:
            continue
        counted += 1 if y == curve.field.zero else 2
        assert (fault(group, (x, y)) is None) == (curve.mul(r, (x, y)) is None)
    assert counted == (97 if group.number == 1 else 63 * 97)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
def test_the_first_bad_point_is_named(curve: Curve) -> None:
    group, n = curve.g2, 3000
    points = np.repeat(cpu.generator(group), n, axis=0)
    outside = group.encode(itertools.islice(oracle.weierstrass(group).points_near(1), 1))
    points[[1700, 2999]] = outside
    assert cpu.first_bad_point(group, points, "subgroup") == (1700, "subgroup")
    points[1699] = 1
    assert cpu.first_bad_point(group, points, "subgroup") == (1699, "curve")

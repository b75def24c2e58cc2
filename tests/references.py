# SPDX-License-Identifier: Apache-2.0
"""Independent libraries behind plain ints, and inputs whose sums are known by discrete logarithms.

Points are pinzk's plain form: pairs of ints (G1) or of pairs (G2), `None` for infinity.
"""

from __future__ import annotations

import functools

import numpy as np
import oracle

from pinzk._testing import TOY
from pinzk.curves import BLS12_381, BN254, Group

CURVES = [BN254, BLS12_381, TOY]
FIELDS = [f for c in CURVES for f in (c.fr, c.fp)]
GROUPS = [g for c in CURVES for g in oracle.groups(c)]
REAL_GROUPS = [g for c in (BN254, BLS12_381) for g in oracle.groups(c)]


def by_name(record) -> str:
    """For pytest's ids."""
    return record.name


def zksnake_curve(group: Group):
    from zksnake.ecc import EllipticCurve

    return EllipticCurve({"bn254": "BN254", "bls12_381": "BLS12_381"}[group.curve_name])


def zksnake_generator(group: Group):
    curve = zksnake_curve(group)
    return curve.G1() if group.number == 1 else curve.G2()


def from_zksnake(p):
    if p.is_zero():
        return None
    return (p.x, p.y) if isinstance(p.x, int) else (tuple(p.x), tuple(p.y))


def to_zksnake(group: Group, p):
    return zksnake_generator(group) * 0 if p is None else zksnake_curve(group)(*p)


def arkworks_class(group: Group):
    import py_arkworks_bls12381 as ark

    return ark.G1Point if group.number == 1 else ark.G2Point


def from_arkworks(p):
    raw = bytes(p.to_xy_bytes_be())
    c = [int.from_bytes(raw[i : i + 48], "big") for i in range(0, len(raw), 48)]
    if not any(c):
        return None
    return (c[0], c[1]) if len(c) == 2 else ((c[0], c[1]), (c[2], c[3]))


def to_arkworks(group: Group, p):
    cls = arkworks_class(group)
    if p is None:
        return cls.identity()
    flat = p if group.number == 1 else (*p[0], *p[1])
    return cls.from_xy_bytes_be(b"".join(v.to_bytes(48, "big") for v in flat))


def arkworks_scalar(k: int):
    import py_arkworks_bls12381 as ark

    return ark.Scalar.from_le_bytes(k.to_bytes(32, "little"))


def multiple_of_generator(group: Group, k: int):
    """k G for 0 <= k < r, by py_arkworks_bls12381 or zksnake (the toy curve: by the oracle)."""
    if group.curve_name == "toy":
        return oracle.weierstrass(group).mul(k, group.generator())
    if group.curve_name == "bls12_381":
        return from_arkworks(arkworks_class(group)() * arkworks_scalar(k))
    return from_zksnake(zksnake_generator(group) * k)


@functools.cache
def known_multiples(group: Group, n: int) -> tuple[list[int], np.ndarray]:
    """n logarithms and the rows of those multiples of G: a progression, added up by the oracle.

    On the toy curve it runs through every point, infinity too, again and again.
    """
    curve, r = oracle.weierstrass(group), group.scalar.modulus
    first, step = 0x1F2E3D4C5B6A79880123456789ABCDEF0F1E2D3C4B5A6978 % r, 0x2545F4914F6CDD1D % r
    p, q = (multiple_of_generator(group, k) for k in (first, step))
    points = []
    for _ in range(n):
        points.append(p)
        p = curve.add(p, q)
    rows = group.encode(points)
    rows.setflags(write=False)
    return [(first + i * step) % r for i in range(n)], rows


def random_ints(modulus: int, n: int, seed: int) -> list[int]:
    """n ints below the modulus, the same ones every time."""
    raw = np.random.default_rng(seed).bytes(48 * n)
    return [int.from_bytes(raw[48 * i : 48 * i + 48], "little") % modulus for i in range(n)]


def edge_pairs(field) -> tuple[list[int], list[int]]:
    """All pairs of edge values, as two lists."""
    edges = oracle.edge_values(field.modulus, field.limbs)
    return [a for a in edges for _ in edges], edges * len(edges)


def samples(field) -> tuple[list[int], list[int]]:
    """All pairs of edge values, then random ones."""
    a, b = edge_pairs(field)
    return a + random_ints(field.modulus, 500, 1), b + random_ints(field.modulus, 500, 2)

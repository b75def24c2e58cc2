# SPDX-License-Identifier: Apache-2.0
"""The quotient against polynomial division, and the doors of `msm`."""

from __future__ import annotations

import random

import numpy as np
import oracle
import pytest

from pinzk.curves import BLS12_381, BN254, Curve
from pinzk.errors import FormatError
from pinzk.stages import quotient
from pinzk.stages.msm import msm
from pinzk.stages.ntt import Domain

every = pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)


def divided_by_z(p: list[int], n: int, r: int) -> list[int]:
    """p / (X^n - 1); the remainder must be zero."""
    p, out = list(p), [0] * max(len(p) - n, 0)
    for i in reversed(range(n, len(p))):
        out[i - n] = p[i]
        p[i - n] = (p[i - n] + p[i]) % r
        p[i] = 0
    assert not any(p)
    return out


@every
@pytest.mark.parametrize("log_n", [0, 1, 2, 5])
def test_quotient_of_snarkjs_is_minus_two_h_on_the_odd_coset(curve: Curve, log_n: int) -> None:
    domain, r, n, draw = (
        Domain(curve, log_n, root="snarkjs"),
        curve.fr.modulus,
        1 << log_n,
        random.Random(log_n),
    )
    a, b = ([draw.choice([0, 1, r - 1, draw.randrange(r)]) for _ in range(n)] for _ in range(2))
    # as polynomials, by the definition
    inverse, n_inverse = pow(domain.omega, -1, r), pow(n, -1, r)
    c = [x * y % r for x, y in zip(a, b, strict=True)]
    pa, pb, pc = ([x * n_inverse % r for x in oracle.dft(v, inverse, r)] for v in (a, b, c))
    product = [0] * (2 * n - 1)
    for i, x in enumerate(pa):
        for j, y in enumerate(pb):
            product[i + j] = (product[i + j] + x * y) % r
    for i, x in enumerate(pc):
        product[i] = (product[i] - x) % r
    h = divided_by_z(product, n, r)
    odd = [domain.default_shift * pow(domain.omega, i, r) % r for i in range(n)]
    want = [-2 * sum(k * pow(x, i, r) for i, k in enumerate(h)) % r for x in odd]

    rows_a, rows_b = curve.fr.encode(a), curve.fr.encode(b)
    got = quotient.snarkjs(domain, rows_a, rows_b)
    assert got is rows_a
    assert curve.fr.decode(got) == want


@every
def test_msm_takes_both_forms_of_scalars(curve: Curve) -> None:
    r = curve.fr.modulus
    scalars = [0, 1, 2, r - 1, r // 3] * 9
    for group in (curve.g1, curve.g2):
        o = oracle.weierstrass(group)
        g = group.generator()
        points = [g, None, o.neg(g), o.add(g, g), g] * 9
        bases = group.encode(points)
        total = sum(k * m for k, m in zip(scalars, [1, 0, -1, 2, 1] * 9, strict=True)) % r
        want = [o.mul(total, g)]
        assert group.decode(msm(group, bases, curve.fr.encode(scalars))) == want
        assert group.decode(msm(group, bases, curve.fr.encode_canonical(scalars), canonical=True)) == want
        # views and read-only arrays are read as they are
        bases.flags.writeable = False
        half = o.mul(
            sum(k * m for k, m in zip(scalars[::2], ([1, 0, -1, 2, 1] * 9)[::2], strict=True)) % r, g
        )
        assert group.decode(msm(group, bases[::2], curve.fr.encode(scalars)[::2], threads=1)) == [half]


@every
def test_msm_of_nothing_is_infinity(curve: Curve) -> None:
    for group in (curve.g1, curve.g2):
        got = msm(group, np.zeros((0, group.limbs), np.uint64), np.zeros((0, 4), np.uint64))
        assert got.shape == (1, group.limbs)
        assert group.decode(got) == [None]


@every
def test_msm_refuses(curve: Curve) -> None:
    g, r = curve.g1, curve.fr.modulus
    bases, scalars = np.zeros((3, g.limbs), np.uint64), np.zeros((3, 4), np.uint64)
    for canonical in (True, False):
        too_large = scalars.copy()
        too_large[1] = [r >> 64 * i & (1 << 64) - 1 for i in range(4)]
        with pytest.raises(FormatError, match="scalar 1 is not below the order") as caught:
            msm(g, bases, too_large, canonical=canonical)
        assert caught.value.index == 1
    with pytest.raises(ValueError, match="lengths differ: 3 and 2"):
        msm(g, bases, scalars[:2])
    with pytest.raises(ValueError, match=f"bases must be an array uint64\\[n, {g.limbs}\\]"):
        msm(g, bases[:, :4], scalars)
    with pytest.raises(ValueError, match=r"scalars must be an array uint64\[n, 4\], not int64"):
        msm(g, bases, scalars.astype(np.int64))
    with pytest.raises(ValueError, match=r"scalars must be .* not list"):
        msm(g, bases, [1, 2, 3])
    with pytest.raises(ValueError, match="stream"):
        msm(g, bases, scalars, stream=0)

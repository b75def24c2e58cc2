# SPDX-License-Identifier: Apache-2.0
"""The pairings: laws, values against py_ecc, products against py_arkworks_bls12381, and the subgroup test of G2."""

from __future__ import annotations

import itertools
from math import gcd

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import by_name, multiple_of_generator, random_ints, to_arkworks

from pinzk._core import cpu, pairing
from pinzk.curves import BLS12_381, BN254, Curve, Group

both = pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=by_name)
SEED = {"bn254": 4965661367192848881, "bls12_381": -0xD201000000010000}
Z = SEED["bls12_381"]
COFACTOR_OF_G2 = {
    "bn254": 2 * BN254.fp.modulus - BN254.fr.modulus,
    "bls12_381": (Z**8 - 4 * Z**7 + 5 * Z**6 - 4 * Z**4 + 6 * Z**3 - 4 * Z**2 - 4 * Z + 13) // 9,
}


def multiples(group: Group, scalars: list[int]) -> np.ndarray:
    r = group.scalar.modulus
    return cpu.fixed_base(
        group, cpu.generator(group), group.scalar.encode_canonical([k % r for k in scalars])
    )


def e(curve: Curve, *pairs: tuple[int, int]) -> list[int]:
    """The product of e(a G1, b G2) as twelve ints."""
    g1, g2 = (
        multiples(g, list(k)) for g, k in zip((curve.g1, curve.g2), zip(*pairs, strict=True), strict=True)
    )
    return curve.fp.decode(pairing.pairing(curve, g1, g2))


ONE = [1] + [0] * 11


@both
def test_the_pairing_is_bilinear_and_not_degenerate(curve):
    r = curve.fr.modulus
    a, b, c = random_ints(r, 3, 1)
    base = e(curve, (1, 1))
    assert base != ONE
    assert e(curve, (a, b)) == e(curve, (a * b % r, 1)) == e(curve, (1, a * b % r))
    assert e(curve, (a, 1), (b, 1)) == e(curve, (a + b, 1))
    assert e(curve, (1, a), (1, b), (c, 1)) == e(curve, (1, a + b + c))
    assert e(curve, (a, b), (r - a, b)) == ONE


@both
def test_pairs_with_infinity_count_as_one(curve):
    assert e(curve, (0, 5)) == e(curve, (5, 0)) == e(curve, (0, 0)) == ONE
    assert e(curve, (0, 5), (3, 4), (7, 0)) == e(curve, (3, 4))
    nothing = curve.g1.encode([]), curve.g2.encode([])
    assert pairing.pairing_product_is_one(curve, *nothing)


@both
@given(
    logs=st.lists(st.tuples(st.integers(0, 2**256), st.integers(0, 2**256)), max_size=4),
    off=st.integers(0, 2),
)
def test_a_product_is_one_just_when_the_logarithms_say_so(curve, logs, off):
    r = curve.fr.modulus
    total = sum(a * b for a, b in logs) % r
    logs = [*logs, (-total + off, 1)]
    g1, g2 = multiples(curve.g1, [a for a, _ in logs]), multiples(curve.g2, [b for _, b in logs])
    assert pairing.pairing_product_is_one(curve, g1, g2) == (off == 0)


@both
def test_values_are_those_of_py_ecc_up_to_the_documented_exponent(curve):
    a, b = random_ints(curve.fr.modulus, 2, 2)
    xi = {"bn254": 9, "bls12_381": 1}[curve.name]
    if curve is BN254:
        from py_ecc import optimized_bn128 as ecc

        z = SEED["bn254"]
        exponent = 2 * z * (6 * z**2 + 3 * z + 1)
    else:
        from py_ecc import optimized_bls12_381 as ecc

        exponent = -3  # py_ecc does not invert for the negative seed
    theirs = ecc.pairing(ecc.multiply(ecc.G2, b), ecc.multiply(ecc.G1, a)) ** (exponent % curve.fr.modulus)
    # ours: coefficients of w^0, w^2, w^4, w^1, w^3, w^5 in Fp[u]; theirs: in powers of w alone, u = w^6 - xi
    ours, flat = [0] * 12, e(curve, (a, b))
    for power, (c0, c1) in zip((0, 2, 4, 1, 3, 5), zip(flat[::2], flat[1::2], strict=True), strict=True):
        ours[power] += c0 - xi * c1
        ours[power + 6] += c1
    assert [c % curve.fp.modulus for c in ours] == [int(c) for c in theirs.coeffs]


def test_products_agree_with_arkworks():
    import py_arkworks_bls12381 as ark

    curve, r = BLS12_381, BLS12_381.fr.modulus
    for seed in range(6):
        logs = random_ints(r, 6, seed)
        if seed % 2:  # make the sum of products vanish
            logs[4:] = [-(logs[0] * logs[1] + logs[2] * logs[3]) % r, 1]
        g1, g2 = multiples(curve.g1, logs[::2]), multiples(curve.g2, logs[1::2])
        theirs = ark.GT.multi_pairing(
            [to_arkworks(curve.g1, p) for p in curve.g1.decode(g1)],
            [to_arkworks(curve.g2, q) for q in curve.g2.decode(g2)],
        )
        assert pairing.pairing_product_is_one(curve, g1, g2) == (theirs == ark.GT.one()) == bool(seed % 2)


# ---- the subgroup of G2 ----


@both
def test_the_hard_parts_raise_to_a_multiple_of_the_exponent(curve):
    """The exponents that final_exponentiation.hpp names are k (p^4 - p^2 + 1) / r with k prime to r."""
    z, p, r = SEED[curve.name], curve.fp.modulus, curve.fr.modulus
    hard = (p**4 - p**2 + 1) // r
    if curve is BN254:
        k = 2 * z * (6 * z**2 + 3 * z + 1)
        top = 12 * z**3 + 6 * z**2
        exponent = (
            (1 + 6 * z + 12 * z**2 + 12 * z**3)
            + (top + 4 * z) * p
            + (top + 6 * z) * p**2
            + (top + 4 * z - 1) * p**3
        )
    else:
        k, exponent = 3, (z - 1) ** 2 * (z + p) * (z**2 + p**2 - 1) + 3
    assert gcd(k, r) == 1
    assert exponent % (p**4 - p**2 + 1) == k * hard % (p**4 - p**2 + 1)


@both
def test_the_endomorphism_of_the_subgroup_test_kills_nothing_else(curve):
    """Its norm shares only r with the order of the twist, so a point it kills has order r (or is infinity)."""
    z, p, r = SEED[curve.name], curve.fp.modulus, curve.fr.modulus
    t = p + 1 - (r if curve is BN254 else p - z)  # trace of the curve: 6z^2 + 1, z + 1
    # m + n psi with psi^2 = t psi - p
    if curve is BN254:  # 6z + 2 + psi - psi^2 + psi^3, psi^3 = (t^2 - p) psi - t p
        m, n = 6 * z + 2 + p - t * p, 1 - t + t * t - p
    else:
        m, n = z, -1
    norm = m * m + m * n * t + n * n * p
    assert gcd(norm, r * COFACTOR_OF_G2[curve.name]) == r
    assert COFACTOR_OF_G2[curve.name] % r != 0


def twist_points(curve: Curve, n: int) -> list:
    """Points of the twist that are not in the subgroup."""
    return list(itertools.islice(oracle.weierstrass(curve.g2).points_near(1), n))


@both
def test_points_outside_the_subgroup_of_g2_are_told(curve):
    twist, r = oracle.weierstrass(curve.g2), curve.fr.modulus
    cofactor = COFACTOR_OF_G2[curve.name]
    small = {"bn254": [10069], "bls12_381": [13, 23]}[curve.name]  # prime factors of the cofactor
    for point in twist_points(curve, 2):
        assert twist.mul(r * cofactor, point) is None
        outside = [point, twist.mul(r, point)]
        for prime in small:
            assert cofactor % prime == 0
            low = twist.mul(r * cofactor // prime, point)
            if low is None:
                low = twist.mul(r * cofactor // prime**2, point)
            assert low is not None
            outside += [low, twist.neg(low), twist.add(low, curve.g2.generator())]
        for bad in outside:
            assert not pairing.in_g2(curve, curve.g2.encode([bad]))
            assert cpu.first_bad_point(curve.g2, curve.g2.encode([bad]), "subgroup") == (0, "subgroup")
        inside = twist.mul(cofactor, point)
        assert inside is not None
        assert pairing.in_g2(curve, curve.g2.encode([inside]))
    for k in (0, 1, 2, r - 1):
        assert pairing.in_g2(curve, curve.g2.encode([multiple_of_generator(curve.g2, k)]))


# ---- the prepared key ----


@both
def test_a_prepared_key_accepts_just_the_equation_of_groth16(curve):
    r = curve.fr.modulus
    alpha, beta, gamma, delta, a, b, inputs = random_ints(r, 7, 3)
    key = pairing.PreparedKey(
        curve, multiples(curve.g1, [alpha]), *(multiples(curve.g2, [k]) for k in (beta, gamma, delta))
    )
    assert curve.fp.decode(key.alpha_beta()) == e(curve, (alpha, beta))
    c = (a * b - alpha * beta - inputs * gamma) * pow(delta, -1, r) % r

    def check(a, b, c, inputs):
        p, q = multiples(curve.g1, [a, c, inputs]), multiples(curve.g2, [b])
        return key.check(p[:1], q, p[1:2], p[2:])

    assert check(a, b, c, inputs) == "valid"
    assert check(2 * a, b * pow(2, -1, r), c, inputs) == "valid"  # Groth16 proofs are malleable
    for wrong in [(a + 1, b, c, inputs), (a, b + 1, c, inputs), (a, b, c + 1, inputs), (a, b, c, inputs + 1)]:
        assert check(*wrong) == "equation"
    assert check(0, b, c, inputs) == check(a, 0, c, inputs) == "equation"
    p = multiples(curve.g1, [a, c, inputs])
    off = curve.g2.encode(twist_points(curve, 1))
    assert key.check(p[:1], off, p[1:2], p[2:]) == "subgroup"


def test_shapes_are_checked():
    g1, g2 = cpu.generator(BN254.g1), cpu.generator(BN254.g2)
    with pytest.raises(ValueError, match=r"g2 must have shape \(1, 16\)"):
        pairing.pairing(BN254, g1, np.vstack([g2, g2]))
    with pytest.raises(ValueError, match=r"g1 must have shape \(1, 12\)"):
        pairing.pairing(BLS12_381, g1, g2)
    with pytest.raises(ValueError, match="beta_2"):
        pairing.PreparedKey(BN254, g1, g1, g2, g2)
    with pytest.raises(TypeError, match="pickled"):
        pairing.PreparedKey(BN254, g1, g2, g2, g2).__reduce__()

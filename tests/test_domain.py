# SPDX-License-Identifier: Apache-2.0
"""Laws of `Domain`, against sums over Python integers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinzk._testing import TOY
from pinzk.curves import BLS12_381, BN254, Curve
from pinzk.stages.ntt import Domain

CURVES = [BN254, BLS12_381]
ROOTS = ["snarkjs", "bellman"]
every = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)
every_root = pytest.mark.parametrize("root", ROOTS)


def elements(curve: Curve, n: int, seed: int = 1) -> list[int]:
    """Mostly full-size values, with the edges among them."""
    draw, r = random.Random(seed), curve.fr.modulus
    return [draw.choice([0, 1, r - 1, draw.randrange(r), draw.randrange(r)]) for _ in range(n)]


def evaluate(coefficients: list[int], x: int, r: int) -> int:
    value = 0
    for c in reversed(coefficients):
        value = (value * x + c) % r
    return value


def apply(curve: Curve, f: Callable[..., np.ndarray], v: list[int], *shift: int) -> list[int]:
    return curve.fr.decode(f(curve.fr.encode(v), *shift))


# ---- the roots ----


@pytest.mark.parametrize(
    ("curve", "root", "log_n", "high"),
    [(BLS12_381, "snarkjs", 32, 0x0212D79E), (BLS12_381, "bellman", 32, 0x16A2A19E)],
    ids=["snarkjs", "bellman"],
)
def test_root_of_the_largest_domain(curve: Curve, root: str, log_n: int, high: int) -> None:
    # only the number is made here, no table
    assert Domain(curve, log_n, root=root).omega >> 224 == high


def test_roots_agree_on_bn254() -> None:
    assert Domain(BN254, 28, root="snarkjs").omega == Domain(BN254, 28, root="bellman").omega


@every
@every_root
def test_omega_has_order_n(curve: Curve, root: str) -> None:
    r = curve.fr.modulus
    for log_n in range(curve.fr.two_adicity + 1):
        w = Domain(curve, log_n, root=root).omega
        assert pow(w, 1 << log_n, r) == 1
        assert log_n == 0 or pow(w, 1 << (log_n - 1), r) == r - 1


@every
def test_default_shift(curve: Curve) -> None:
    snarkjs, bellman = (Domain(curve, 6, root=root) for root in ROOTS)
    assert pow(snarkjs.default_shift, 2, curve.fr.modulus) == snarkjs.omega
    assert bellman.default_shift == (5 if curve is BN254 else 7)


# ---- transforms ----


@every
@every_root
@pytest.mark.parametrize("log_n", range(7))
def test_transforms_are_evaluations(curve: Curve, root: str, log_n: int) -> None:
    domain, r = Domain(curve, log_n, root=root), curve.fr.modulus
    v = elements(curve, domain.size)
    points = [pow(domain.omega, i, r) for i in range(domain.size)]
    assert apply(curve, domain.ntt, v) == [evaluate(v, x, r) for x in points]
    for shift in (None, 1, 12345, r - 1):
        g = domain.default_shift if shift is None else shift
        assert apply(curve, domain.coset_ntt, v, *[] if shift is None else [shift]) == [
            evaluate(v, g * x % r, r) for x in points
        ]


@every
@every_root
@pytest.mark.parametrize("log_n", [0, 1, 2, 5, 10, 13])
def test_inverse_of_forward_is_the_identity(curve: Curve, root: str, log_n: int) -> None:
    domain = Domain(curve, log_n, root=root)
    v = curve.fr.encode(elements(curve, domain.size))
    kept = v.copy()
    assert np.array_equal(domain.intt(domain.ntt(v)), v)
    assert np.array_equal(domain.ntt(domain.intt(v)), v)
    for shift in (None, 3):
        assert np.array_equal(domain.coset_intt(domain.coset_ntt(v, shift), shift), v)
    assert np.array_equal(v, kept)


@every
@pytest.mark.parametrize("log_n", [0, 1, 2, 3, 8])
def test_to_coset_is_intt_then_coset_ntt(curve: Curve, log_n: int) -> None:
    domain = Domain(curve, log_n, root="snarkjs")
    v = curve.fr.encode(elements(curve, domain.size))
    want = domain.coset_ntt(domain.intt(v))
    domain.to_coset(v)
    assert np.array_equal(v, want)


@given(
    a=st.lists(st.integers(0, BLS12_381.fr.modulus - 1), max_size=16),
    b=st.lists(st.integers(0, BLS12_381.fr.modulus - 1), max_size=16),
)
def test_pointwise_product_is_convolution(a: list[int], b: list[int]) -> None:
    r, domain = BLS12_381.fr.modulus, Domain(BLS12_381, 5, root="bellman")
    values_a, values_b = (apply(BLS12_381, domain.ntt, v + [0] * (32 - len(v))) for v in (a, b))
    product = apply(
        BLS12_381,
        domain.intt,
        [x * y % r for x, y in zip(values_a, values_b, strict=True)],
    )
    want = [0] * 32
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            want[i + j] = (want[i + j] + x * y) % r
    assert product == want


def test_toy_domains_in_full() -> None:
    # F_97 has 2^5-th roots; every unit vector, every power of two
    r = TOY.fr.modulus
    for log_n in range(6):
        domain = Domain(TOY, log_n, root="snarkjs")
        for j in range(domain.size):
            unit = [int(i == j) for i in range(domain.size)]
            assert apply(TOY, domain.ntt, unit) == [pow(domain.omega, i * j, r) for i in range(domain.size)]


# ---- refusals ----


@every
@every_root
def test_limits(curve: Curve, root: str) -> None:
    s = curve.fr.two_adicity
    for log_n in (-1, s + 1, 64):
        with pytest.raises(ValueError, match=f"two-adicity of {curve.fr.name}"):
            Domain(curve, log_n, root=root)
    with pytest.raises(TypeError, match="float"):
        Domain(curve, 3.0, root=root)  # type: ignore[arg-type]


@every
def test_the_largest_domain_has_no_snarkjs_coset(curve: Curve) -> None:
    s = curve.fr.two_adicity
    with pytest.raises(ValueError, match=f"log_n is at most {s - 1}"):
        _ = Domain(curve, s, root="snarkjs").default_shift
    assert Domain(curve, s, root="bellman").default_shift in (5, 7)


def test_root_has_no_default() -> None:
    with pytest.raises(TypeError):
        Domain(BN254, 3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="'snarkjs' or 'bellman'"):
        Domain(BN254, 3, root="circom")


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((7, 4), np.uint64),
        np.zeros((8, 5), np.uint64),
        np.zeros((8, 4), np.int64),
        np.zeros(32, np.uint64),
        [0] * 8,
    ],
    ids=["rows", "columns", "type", "flat", "list"],
)
def test_arrays_that_do_not_fit(bad: object) -> None:
    domain = Domain(BN254, 3, root="snarkjs")
    for f in (domain.ntt, domain.intt, domain.coset_ntt, domain.coset_intt):
        with pytest.raises(ValueError, match=r"uint64\[8, 4\]"):
            f(bad)


@pytest.mark.parametrize("shift", [0, -1, BN254.fr.modulus, 1.5, "3"])
def test_shifts_that_are_none(shift: object) -> None:
    domain = Domain(BN254, 1, root="snarkjs")
    with pytest.raises((ValueError, TypeError), match=r"shift|integer"):
        domain.coset_ntt(np.zeros((2, 4), np.uint64), shift)  # type: ignore[arg-type]


def test_views_are_read_as_they_are() -> None:
    domain = Domain(BN254, 3, root="snarkjs")
    v = BN254.fr.encode(elements(BN254, 16))
    assert np.array_equal(domain.ntt(v[::2]), domain.ntt(v[::2].copy()))
    assert np.array_equal(domain.ntt(v[::-1][:8]), domain.ntt(v[::-1][:8].copy()))

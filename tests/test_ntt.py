# SPDX-License-Identifier: Apache-2.0
"""Transforms of the CPU backend, by laws, against the naive sum, zksnake and python-flint.

`dif` takes natural order to bit-reversed, `dit` bit-reversed to natural, both X_k = sum_j x_j w^(jk).
"""

from __future__ import annotations

import flint
import numpy as np
import oracle
import pytest
from references import CURVES, by_name, random_ints
from zksnake import polynomial as zksnake

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254

# (curve, generator of the multiplicative group that defines the roots, largest log_n tried)
ROOTS = [(BN254, 5, 14), (BLS12_381, 5, 14), (BLS12_381, 7, 14), (CURVES[2], 5, 5)]
every_root = pytest.mark.parametrize(
    ("curve", "generator", "largest"), ROOTS, ids=[f"{c.name}-{g}" for c, g, _ in ROOTS]
)


def twiddles(field, root: int, n: int) -> np.ndarray:
    return cpu.twiddles(field, root, n)


def dif(field, data, root: int, **kw) -> np.ndarray:
    out = data.copy()
    assert cpu.dif(field, out, twiddles(field, root, len(data)), **kw) is None
    return out


def dit(field, data, root: int, **kw) -> np.ndarray:
    out = data.copy()
    assert cpu.dit(field, out, twiddles(field, root, len(data)), **kw) is None
    return out


def reversed_rows(field, data) -> np.ndarray:
    out = data.copy()
    cpu.bit_reverse(field, out)
    return out


def random_rows(field, n: int, seed: int = 1) -> np.ndarray:
    return field.encode(random_ints(field.modulus, n, seed))


def primitive_root(curve, generator: int, log_n: int) -> int:
    return oracle.root_of_unity(curve.fr.modulus, generator, log_n)


@pytest.mark.parametrize("curve", CURVES, ids=by_name)
@pytest.mark.parametrize("log_n", range(11))
def test_bit_reverse_moves_row_i_to_the_reversed_index(curve, log_n):
    n = 1 << log_n
    data = np.arange(4 * n, dtype=np.uint64).reshape(n, 4)  # any words: rows only move
    assert np.array_equal(reversed_rows(curve.fr, data), np.array(oracle.bit_reversed(list(data))))
    assert np.array_equal(reversed_rows(curve.fr, reversed_rows(curve.fr, data)), data)


@every_root
def test_dif_and_dit_are_the_naive_sum(curve, generator, largest):
    f = curve.fr
    for log_n in range(min(largest, 8) + 1):
        n, root = 1 << log_n, primitive_root(curve, generator, log_n)
        values = random_ints(f.modulus, n, log_n)
        expected = oracle.dft(values, root, f.modulus)
        assert f.decode(dif(f, f.encode(values), root)) == oracle.bit_reversed(expected)
        assert f.decode(dit(f, f.encode(oracle.bit_reversed(values)), root)) == expected


@every_root
def test_edge_values_transform_like_the_naive_sum(curve, generator, largest):
    f, r = curve.fr, curve.fr.modulus
    log_n = min(largest, 5)
    n, root = 1 << log_n, primitive_root(curve, generator, log_n)
    edges = oracle.edge_values(r, 4)
    for values in (
        [0] * n,
        [1] * n,
        [r - 1] * n,
        [0] * (n - 1) + [r - 1],
        [(edges * n)[i] for i in range(n)],
        [(edges * n)[-i - 1] for i in range(n)],
        [r - 1, 0] * (n // 2),
    ):
        expected = oracle.dft(values, root, r)
        assert f.decode(dif(f, f.encode(values), root)) == oracle.bit_reversed(expected)
        assert f.decode(dit(f, f.encode(oracle.bit_reversed(values)), root)) == expected


@every_root
def test_dit_of_dif_with_the_inverse_root_is_n_times_the_identity(curve, generator, largest):
    f = curve.fr
    for log_n in range(largest + 1):
        n, root = 1 << log_n, primitive_root(curve, generator, log_n)
        data = random_rows(f, n, 50 + log_n)
        back = dit(f, dif(f, data, root), pow(root, -1, f.modulus))
        scaled = cpu.multiply(f, data, np.repeat(f.encode([n % f.modulus]), n, axis=0))
        assert np.array_equal(back, scaled), n


@every_root
def test_dif_and_dit_agree_at_every_size(curve, generator, largest):
    f = curve.fr
    for log_n in range(largest + 1):
        n, root = 1 << log_n, primitive_root(curve, generator, log_n)
        data = random_rows(f, n, 80 + log_n)
        assert np.array_equal(reversed_rows(f, dif(f, data, root)), dit(f, reversed_rows(f, data), root)), n


@every_root
def test_a_single_one_becomes_the_powers_of_the_root(curve, generator, largest):
    f = curve.fr
    for log_n in range(largest + 1):
        n, root = 1 << log_n, primitive_root(curve, generator, log_n)
        for j in {0, 1 % n, n // 3, n - 1}:
            data = np.zeros((n, 4), dtype=np.uint64)
            data[j] = f.encode([1])[0]
            expected = cpu.powers(f, pow(root, j, f.modulus), n)
            assert np.array_equal(reversed_rows(f, dif(f, data, root)), expected), (n, j)
            assert np.array_equal(dit(f, reversed_rows(f, data), root), expected), (n, j)


@every_root
def test_pointwise_products_are_cyclic_convolutions(curve, generator, largest):
    """As computed by python-flint's polynomials, reduced by X^n - 1."""
    f, r = curve.fr, curve.fr.modulus
    for log_n in range(0, largest + 1, 1 if largest < 8 else 3):
        n, root = 1 << log_n, primitive_root(curve, generator, log_n)
        a, b = (random_ints(r, n, seed) for seed in (log_n, 1000 + log_n))
        ring = flint.fmpz_mod_poly_ctx(flint.fmpz_mod_ctx(r))
        full = [int(c) for c in ring(a) * ring(b)]
        expected = [0] * n
        for i, c in enumerate(full):
            expected[i % n] = (expected[i % n] + c) % r
        product = cpu.multiply(f, *(dif(f, f.encode(v), root) for v in (a, b)))
        back = f.decode(dit(f, product, pow(root, -1, r)))
        assert [x * pow(n, -1, r) % r for x in back] == expected


@every_root
def test_values_are_those_of_flint_at_the_powers_of_the_root(curve, generator, largest):
    f, r = curve.fr, curve.fr.modulus
    log_n = min(largest, 9)
    n, root = 1 << log_n, primitive_root(curve, generator, log_n)
    values = random_ints(r, n, 7)
    ring = flint.fmpz_mod_poly_ctx(flint.fmpz_mod_ctx(r))
    points = [pow(root, k, r) for k in range(n)]
    expected = [int(y) for y in ring(values).multipoint_evaluate(points)]
    assert f.decode(reversed_rows(f, dif(f, f.encode(values), root))) == expected


@pytest.mark.parametrize(("curve", "generator"), [(BN254, 5), (BLS12_381, 7)], ids=["bn254", "bls12_381"])
@pytest.mark.parametrize("log_n", [1, 2, 5, 10, 13])
def test_transforms_are_those_of_zksnake(curve, generator, log_n):
    f, r, n = curve.fr, curve.fr.modulus, 1 << log_n
    root = primitive_root(curve, generator, log_n)
    assert zksnake.get_nth_root_of_unity(n, 1, r) == root
    values = random_ints(r, n, 9 + log_n)
    expected = zksnake.fft(values, r, n)
    assert f.decode(reversed_rows(f, dif(f, f.encode(values), root))) == expected
    assert zksnake.ifft(expected, r, n) == values


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=by_name)
def test_transforms_on_a_coset_undo_one_another(curve):
    """The step of the prover: shift by powers of the 2n-th root, forth and back."""
    f, r = curve.fr, curve.fr.modulus
    for log_n in range(13):
        n, shift = 1 << log_n, primitive_root(curve, 5, log_n + 1)
        root = shift * shift % r
        data = random_rows(f, n, 31 + log_n)
        shifted = cpu.multiply(f, data, cpu.powers(f, shift, n))
        values = dif(f, shifted, root)
        back = dit(f, values, pow(root, -1, r))
        unshift = cpu.powers(f, pow(shift, -1, r), n, first=pow(n, -1, r))
        assert np.array_equal(cpu.multiply(f, back, unshift), data)


def test_the_transform_is_linear():
    f, n = BN254.fr, 64
    root = primitive_root(BN254, 5, 6)
    a, b = random_ints(f.modulus, n, 1), random_ints(f.modulus, n, 2)
    total = [(x + 3 * y) % f.modulus for x, y in zip(a, b, strict=True)]
    ta, tb, tt = (f.decode(dif(f, f.encode(v), root)) for v in (a, b, total))
    assert tt == [(x + 3 * y) % f.modulus for x, y in zip(ta, tb, strict=True)]


@pytest.mark.parametrize("transform", [cpu.dif, cpu.dit])
def test_wrong_shapes_are_refused(transform):
    f = BN254.fr
    rows = random_rows(f, 8)
    w = twiddles(f, primitive_root(BN254, 5, 3), 8)
    for n in (0, 3, 5, 6, 7):
        with pytest.raises(ValueError, match="power of two"):
            transform(f, rows[:n].copy(), w)
    with pytest.raises(ValueError, match="twiddles"):
        transform(f, rows.copy(), w[:3])
    with pytest.raises(ValueError, match="shape"):
        transform(f, np.zeros((8, 6), dtype=np.uint64), w)
    with pytest.raises(ValueError, match="scalar field"):
        transform(BN254.fp, rows.copy(), w)

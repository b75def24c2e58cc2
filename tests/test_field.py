# SPDX-License-Identifier: Apache-2.0
"""Prime fields: derived constants, every operation of the template against Python integers, and the loops over rows."""

from __future__ import annotations

import operator

import flint
import numpy as np
import oracle
import probe
import py_arkworks_bls12381 as arkworks
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_ecc.fields import bls12_381_FQ, bn128_FQ
from references import CURVES, by_name, random_ints

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254
from pinzk.errors import FormatError

FIELDS = [f for c in CURVES for f in (c.fr, c.fp)]
REAL_FIELDS = FIELDS[:4]
SCALAR_FIELDS = [c.fr for c in CURVES]
GENERATORS = {"bn254.fr": 5, "bn254.fp": 3, "bls12_381.fr": 7, "bls12_381.fp": 2, "toy.fr": 5, "toy.fp": 3}
SIZES = [0, 1, 2, 31, 32, 33, 237, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 50000]  # chunks are 2^14 rows

every_field = pytest.mark.parametrize("field", FIELDS, ids=by_name)
every_scalar_field = pytest.mark.parametrize("field", SCALAR_FIELDS, ids=by_name)

BINARY = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
ASSIGNING = {"add_to": operator.add, "subtract_from": operator.sub, "multiply_by": operator.mul}
UNARY = {"negate": operator.neg, "twice": lambda x: 2 * x, "square": lambda x: x * x}


def edge_pairs(field) -> tuple[list[int], list[int]]:
    edges = oracle.edge_values(field.modulus, field.limbs)
    return [a for a in edges for _ in edges], edges * len(edges)


def samples(field) -> tuple[list[int], list[int]]:
    """All pairs of edge values, then random ones."""
    a, b = edge_pairs(field)
    return a + random_ints(field.modulus, 500, 1), b + random_ints(field.modulus, 500, 2)


def decoded(field, rows) -> list[int]:
    """Canonical ints, the rows reduced: an element in [p, R) would pass for another one otherwise."""
    assert all(v < field.modulus for v in field.decode_canonical(rows))
    return field.decode(rows)


def some_elements(field) -> st.SearchStrategy[int]:
    return st.one_of(
        st.sampled_from(oracle.edge_values(field.modulus, field.limbs)), st.integers(0, field.modulus - 1)
    )


# ---- constants ----


@every_field
def test_constants_follow_from_modulus_and_generator(field):
    p, n = field.modulus, field.limbs
    c = probe.field_constants(field)
    r = 1 << 64 * n
    (modulus, r1, r2) = (field.decode_canonical(c[k])[0] for k in ("modulus", "r", "r2"))
    assert modulus == p
    assert r1 == r % p
    assert r2 == r * r % p
    assert c["np"] == -pow(p, -1, 1 << 64) % (1 << 64)
    assert c["np"] * p % (1 << 64) == (1 << 64) - 1
    assert c["bits"] == p.bit_length() < 64 * n
    assert (p - 1) % (1 << c["two_adicity"]) == 0 != (p - 1) >> c["two_adicity"] & 1
    assert c["two_adicity"] == field.two_adicity
    assert field.decode(c["one"]) == [1]


@every_field
def test_roots_of_unity_are_powers_of_their_generators(field):
    p = field.modulus
    c = probe.field_constants(field)
    s = c["two_adicity"]
    for name, generator in (("root_5", 5), ("root_7", 7), ("root", c["generator"])):
        (root,) = field.decode(c[name])
        assert root == oracle.root_of_unity(p, generator, s)
    (root,) = field.decode(c["root"])
    assert pow(root, 1 << s, p) == 1
    assert s == 0 or pow(root, 1 << (s - 1), p) == p - 1


@every_field
def test_generators_are_non_residues(field):
    """No square, so its (p-1)/2^s-th power is a primitive 2^s-th root; 5 and 7 too where file formats use them."""
    c = probe.field_constants(field)
    assert c["generator"] == GENERATORS[field.name]
    for g in {c["generator"], *((5, 7) if field.name == "bls12_381.fr" else ())}:
        assert pow(g, (field.modulus - 1) // 2, field.modulus) == field.modulus - 1


@pytest.mark.parametrize("field", FIELDS, ids=by_name)
def test_moduli_are_prime(field):
    assert flint.fmpz(field.modulus).is_prime()


def test_moduli_are_those_of_other_libraries():
    assert BN254.fp.modulus == bn128_FQ.field_modulus
    assert BLS12_381.fp.modulus == bls12_381_FQ.field_modulus
    assert BLS12_381.fr.modulus == int(-arkworks.Scalar(1)) + 1
    from zksnake import constant

    assert BN254.fr.modulus == constant.BN254_SCALAR_FIELD
    assert BN254.fp.modulus == constant.BN254_MODULUS
    assert BLS12_381.fr.modulus == constant.BLS12_381_SCALAR_FIELD
    assert BLS12_381.fp.modulus == constant.BLS12_381_MODULUS


# ---- the template, operation by operation ----


@every_field
@pytest.mark.parametrize("op", BINARY)
def test_binary_operations_are_those_of_integers(field, op):
    a, b = samples(field)
    out = probe.field_op(field, op, field.encode(a), field.encode(b))
    assert decoded(field, out) == [BINARY[op](x, y) % field.modulus for x, y in zip(a, b, strict=True)]


@every_field
@pytest.mark.parametrize("op", UNARY)
def test_unary_operations_are_those_of_integers(field, op):
    a, _ = samples(field)
    out = probe.field_op(field, op, field.encode(a))
    assert decoded(field, out) == [UNARY[op](x) % field.modulus for x in a]


@every_field
@pytest.mark.parametrize("op", ASSIGNING)
def test_assigning_forms_are_those_of_integers_on_two_objects_and_on_one(field, op):
    a, b = samples(field)
    p = field.modulus
    out = probe.field_op(field, op, field.encode(a), field.encode(b))
    assert decoded(field, out) == [ASSIGNING[op](x, y) % p for x, y in zip(a, b, strict=True)]
    assert decoded(field, probe.field_op(field, op, field.encode(a))) == [ASSIGNING[op](x, x) % p for x in a]


@every_field
def test_inverse_times_the_element_is_one_and_zero_stays_zero(field):
    p = field.modulus
    a = oracle.edge_values(p, field.limbs) + random_ints(p, 100, 3)
    out = probe.field_op(field, "inverse", field.encode(a))
    assert decoded(field, out) == [pow(x, -1, p) if x else 0 for x in a]
    products = field.decode(probe.field_op(field, "multiply", out, field.encode(a)))
    assert products == [int(x != 0) for x in a]


@every_field
def test_power_is_that_of_integers(field):
    """Exponents 0, 1, p - 1 (Fermat), p - 2, all ones, single bits; 0^0 = 1."""
    p, bits = field.modulus, 64 * field.limbs
    exponents = [0, 1, 2, 3, p - 1, p - 2, p, (1 << bits) - 1, 1 << (bits - 1), *random_ints(1 << bits, 3, 4)]
    bases = [0, 1, 2 % p, p - 1, *random_ints(p, 3, 5)]
    pairs = [(x, e) for x in bases for e in exponents]
    raw = np.frombuffer(b"".join(e.to_bytes(bits // 8, "little") for _, e in pairs), dtype=np.uint64)
    out = probe.field_op(field, "power", field.encode([x for x, _ in pairs]), raw.reshape(-1, field.limbs))
    assert decoded(field, out) == [pow(x, e, p) for x, e in pairs]


@every_field
def test_conversions_undo_one_another(field):
    p = field.modulus
    a = oracle.edge_values(p, field.limbs) + random_ints(p, 200, 6)
    rows = probe.field_op(field, "from_canonical", field.encode_canonical(a))
    assert np.array_equal(rows, field.encode(a))
    assert np.array_equal(probe.field_op(field, "to_canonical", rows), field.encode_canonical(a))


def unreduced_rows(field) -> np.ndarray:
    """Any words: around p, 2p, ..., and up to R - 1."""
    p, top = field.modulus, 1 << 64 * field.limbs
    values = [p, p + 1, 2 * p - 1, 2 * p, top - 1, top - 2, top >> 1, *random_ints(top, 200, 7)]
    raw = b"".join((v % top).to_bytes(field.nbytes, "little") for v in values)
    return np.frombuffer(raw, dtype=np.uint64).reshape(-1, field.limbs)


@every_field
def test_a_product_reduces_its_second_operand(field):
    """The contract of mul: the second operand may be any integer of N words (the first may not)."""
    rows = unreduced_rows(field)
    values = field.decode_canonical(rows)
    out = probe.field_op(field, "from_canonical", rows)
    assert decoded(field, out) == [v % field.modulus for v in values]
    for other in (0, 1, field.modulus - 1, *random_ints(field.modulus, 3, 8)):
        first = np.repeat(field.encode([other]), len(rows), axis=0)
        expected = [v * other % field.modulus for v in field.decode(rows)]
        assert decoded(field, probe.field_op(field, "multiply", first, rows)) == expected


@every_field
def test_the_product_of_constant_expressions_is_the_product_at_run_time(field):
    a, b = samples(field)
    x, y = field.encode(a), field.encode(b)
    assert np.array_equal(probe.field_op(field, "product", x, y), probe.field_op(field, "multiply", x, y))
    wild = unreduced_rows(field)
    one = np.repeat(field.encode([1]), len(wild), axis=0)
    assert np.array_equal(
        probe.field_op(field, "product", one, wild), probe.field_op(field, "multiply", one, wild)
    )


def test_products_of_words_never_overflow():
    top = (1 << 64) - 1
    words = [0, 1, 2, 0xFFFFFFFF, 1 << 32, (1 << 32) + 1, 1 << 63, top - 1, top]
    cases = [(a, b, c, d) for a in words for b in words for c in (0, 1, top) for d in (0, 1, top)]
    cases += [tuple(random_ints(1 << 64, 4, seed)) for seed in range(100)]
    for a, b, c, d in cases:
        assert probe.multiply_words(a, b, c, d) == (a * b + c + d,) * 2


@pytest.mark.parametrize("field", REAL_FIELDS, ids=by_name)
@given(data=st.data())
def test_the_field_laws(field, data):
    a, b, c = (field.encode([data.draw(some_elements(field), label=n)]) for n in "abc")

    def f(op, x, y=None):
        return probe.field_op(field, op, x, y)

    def same(x, y):
        return np.array_equal(x, y)

    zero, one = field.encode([0]), field.encode([1])
    assert same(f("add", a, b), f("add", b, a))
    assert same(f("multiply", a, b), f("multiply", b, a))
    assert same(f("add", f("add", a, b), c), f("add", a, f("add", b, c)))
    assert same(f("multiply", f("multiply", a, b), c), f("multiply", a, f("multiply", b, c)))
    assert same(f("multiply", a, f("add", b, c)), f("add", f("multiply", a, b), f("multiply", a, c)))
    assert same(f("add", a, zero), a) and same(f("multiply", a, one), a)
    assert same(f("add", a, f("negate", a)), zero) and same(f("subtract", a, b), f("add", a, f("negate", b)))
    assert same(f("square", a), f("multiply", a, a)) and same(f("twice", a), f("add", a, a))
    assert same(f("inverse", f("inverse", a)), a)
    assert same(f("inverse", f("multiply", a, b)), f("multiply", f("inverse", a), f("inverse", b)))


@pytest.mark.parametrize("field", REAL_FIELDS, ids=by_name)
def test_operations_are_those_of_flint(field):
    ring = flint.fmpz_mod_ctx(field.modulus)
    a, b = samples(field)
    x, y = field.encode(a), field.encode(b)
    pairs = [(ring(u), ring(v)) for u, v in zip(a, b, strict=True)]
    for op, law in BINARY.items():
        assert field.decode(probe.field_op(field, op, x, y)) == [int(law(u, v)) for u, v in pairs]
    inverses = [int(u.inverse()) if u != 0 else 0 for u, _ in pairs[-500:]]
    assert field.decode(probe.field_op(field, "inverse", x[-500:])) == inverses


@pytest.mark.parametrize(
    ("field", "other"), [(BN254.fp, bn128_FQ), (BLS12_381.fp, bls12_381_FQ)], ids=["bn254.fp", "bls12_381.fp"]
)
def test_operations_are_those_of_py_ecc(field, other):
    a, b = edge_pairs(field)
    x, y = field.encode(a), field.encode(b)
    for op, law in BINARY.items():
        expected = [law(other(u), other(v)).n for u, v in zip(a, b, strict=True)]
        assert field.decode(probe.field_op(field, op, x, y)) == expected
    quotient = probe.field_op(field, "multiply", x, probe.field_op(field, "inverse", y))
    expected = [(other(u) / other(v)).n if v else 0 for u, v in zip(a, b, strict=True)]
    assert field.decode(quotient) == expected


def test_operations_are_those_of_py_arkworks():
    field = BLS12_381.fr
    a, b = samples(field)

    def scalar(k):
        return arkworks.Scalar.from_le_bytes(k.to_bytes(32, "little"))

    pairs = [(scalar(u), scalar(v)) for u, v in zip(a, b, strict=True)]
    for op, law in BINARY.items():
        out = probe.field_op(field, op, field.encode(a), field.encode(b))
        assert field.decode(out) == [int(law(u, v)) for u, v in pairs]


# ---- loops over rows ----


@every_field
@pytest.mark.parametrize("n", SIZES)
def test_loops_convert_and_multiply_every_row(field, n):
    p = field.modulus
    a, b = random_ints(p, n, 10), random_ints(p, n, 11)
    canonical = field.encode_canonical(a)
    rows = cpu.to_montgomery(field, canonical)
    assert np.array_equal(rows, field.encode(a))
    assert np.array_equal(cpu.from_montgomery(field, rows), canonical)
    product = cpu.multiply(field, rows, field.encode(b))
    assert field.decode(product) == [x * y % p for x, y in zip(a, b, strict=True)]


@every_field
def test_loops_may_write_over_their_input(field):
    a, b = samples(field)
    x, y = field.encode(a), field.encode(b)
    plain = [cpu.multiply(field, x, y), cpu.from_montgomery(field, x), cpu.to_montgomery(field, x)]
    over = [x.copy(), x.copy(), x.copy()]
    assert cpu.multiply(field, over[0], y, over[0]) is over[0]
    assert cpu.from_montgomery(field, over[1], over[1]) is over[1]
    assert cpu.to_montgomery(field, over[2], over[2]) is over[2]
    assert all(np.array_equal(p, q) for p, q in zip(plain, over, strict=True))
    squares, second = x.copy(), y.copy()
    cpu.multiply(field, squares, squares, squares)
    assert field.decode(squares) == [u * u % field.modulus for u in a]
    cpu.multiply(field, x, second, second)
    assert np.array_equal(second, plain[0])


@every_scalar_field
@pytest.mark.parametrize("n", SIZES)
def test_multiply_subtract_is_ab_minus_c(field, n):
    r = field.modulus
    a, b, c = (random_ints(r, n, seed) for seed in (12, 13, 14))
    rows = [field.encode(v) for v in (a, b, c)]
    expected = [(x * y - z) % r for x, y, z in zip(a, b, c, strict=True)]
    assert field.decode(cpu.multiply_subtract(field, *rows)) == expected
    assert cpu.multiply_subtract(field, *rows, rows[2]) is rows[2]
    assert field.decode(rows[2]) == expected


@every_scalar_field
def test_multiply_subtract_of_edge_values(field):
    r = field.modulus
    a, b = edge_pairs(field)
    c = [x * y % r for x, y in zip(a, b, strict=True)]
    assert not cpu.multiply_subtract(field, *map(field.encode, (a, b, c))).any()
    out = cpu.multiply_subtract(field, *map(field.encode, (a, b, b)))
    assert field.decode(out) == [(x - 1) * y % r for x, y in zip(a, b, strict=True)]


@every_scalar_field
@pytest.mark.parametrize("n", SIZES)
def test_powers_are_first_times_base_to_the_i(field, n):
    r = field.modulus
    for base, first in (
        (random_ints(r, 1, 15)[0], random_ints(r, 1, 16)[0]),
        (r - 1, 1),
        (1, r - 1),
        (0, 3),
        (2, 0),
    ):
        expected, x = [], first
        for _ in range(n):
            expected.append(x)
            x = x * base % r
        assert field.decode(cpu.powers(field, base, n, first=first)) == expected
    assert np.array_equal(cpu.powers(field, -1, n), cpu.powers(field, r - 1, n))


@every_scalar_field
@pytest.mark.parametrize("n", SIZES)
def test_batch_inverses_are_inverses_and_zeros_stay(field, n):
    r = field.modulus
    values = random_ints(r, n, 17)
    for zeros in ([], [0], [n - 1], range(0, n, 2), range(n)):
        some = list(values)
        for i in zeros:
            if 0 <= i < n:
                some[i] = 0
        rows = field.encode(some)
        out = cpu.invert(field, rows)
        assert field.decode(cpu.multiply(field, rows, out)) == [int(v != 0) for v in some]
        assert not out[[v == 0 for v in some]].any()
        assert np.array_equal(cpu.invert(field, rows, rows), out)


@every_scalar_field
def test_batch_inverses_of_edge_values(field):
    edges = oracle.edge_values(field.modulus, 4)
    expected = [pow(v, -1, field.modulus) if v else 0 for v in edges]
    assert field.decode(cpu.invert(field, field.encode(edges))) == expected


@every_field
def test_the_first_unreduced_row_is_found(field):
    p, top = field.modulus, 1 << 64 * field.limbs
    n = 40000
    rows = np.repeat(field.encode_canonical([p - 1]), n, axis=0)
    assert cpu.first_unreduced(field, rows) is None
    assert cpu.first_unreduced(field, rows[:0].copy()) is None
    for bad in (p, p + 1, top - 1, p | 1 << (64 * field.limbs - 1)):
        row = np.frombuffer(bad.to_bytes(field.nbytes, "little"), dtype=np.uint64)
        for places in ([0], [n - 1], [16383], [16384], [n - 1, 20000, 17], [5, 4]):
            spoiled = rows.copy()
            spoiled[places] = row
            for threads in (1, 3):
                assert cpu.first_unreduced(field, spoiled, threads=threads) == min(places)


@every_field
def test_encoding_refuses_what_is_no_element(field):
    for bad in (-1, field.modulus, 1 << 64 * field.limbs):
        with pytest.raises(FormatError) as caught:
            field.encode([0, 1, bad])
        assert caught.value.index == 2
        with pytest.raises(FormatError):
            field.encode_canonical([bad])


def test_wrong_shapes_are_refused():
    f, p = BN254.fr, BLS12_381.fp
    four, six = np.zeros((3, 4), dtype=np.uint64), np.zeros((3, 6), dtype=np.uint64)
    for call in (cpu.to_montgomery, cpu.from_montgomery, cpu.first_unreduced):
        with pytest.raises(ValueError, match=r"shape \(n, 4\), not \(3, 6\)"):
            call(f, six)
        with pytest.raises(ValueError, match=r"shape \(n, 6\), not \(3, 4\)"):
            call(p, four)
    with pytest.raises(ValueError, match="lengths differ: 3 and 2"):
        cpu.multiply(f, four, four[:2].copy())
    with pytest.raises(ValueError, match="out must have shape"):
        cpu.multiply(f, four, four, four[:2].copy())
    with pytest.raises(ValueError, match="lengths differ"):
        cpu.multiply_subtract(f, four, four, four[:1].copy())
    for call in (cpu.invert, lambda field, a: cpu.powers(field, 2, 3)):
        with pytest.raises(ValueError, match="scalar field"):
            call(BN254.fp, four)
    with pytest.raises(ValueError, match="negative"):
        cpu.powers(f, 2, -1)

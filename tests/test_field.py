# SPDX-License-Identifier: Apache-2.0
"""Prime fields: derived constants, and every operation of the template, on each machine type, against Python integers."""

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
from references import FIELDS, by_name, edge_pairs, random_ints, samples

from pinzk.curves import BLS12_381, BN254

GENERATORS = {"bn254.fr": 5, "bn254.fp": 3, "bls12_381.fr": 7, "bls12_381.fp": 2, "toy.fr": 5, "toy.fp": 3}
DOORS = [probe.FieldDoor(f, m) for f in FIELDS for m in probe.machines(f.curve_name)]
REAL_DOORS = [d for d in DOORS if d.field.curve_name != "toy"]

every_field = pytest.mark.parametrize("field", FIELDS, ids=by_name)
every_door = pytest.mark.parametrize("door", DOORS, ids=by_name)

BINARY = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
ASSIGNING = {"add_to": operator.add, "subtract_from": operator.sub, "multiply_by": operator.mul}
UNARY = {"negate": operator.neg, "twice": lambda x: 2 * x, "square": lambda x: x * x}


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


@every_field
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


@every_door
@pytest.mark.parametrize("op", BINARY)
def test_binary_operations_are_those_of_integers(door, op):
    field = door.field
    a, b = samples(field)
    out = door(op, field.encode(a), field.encode(b))
    assert decoded(field, out) == [BINARY[op](x, y) % field.modulus for x, y in zip(a, b, strict=True)]


@every_door
@pytest.mark.parametrize("op", UNARY)
def test_unary_operations_are_those_of_integers(door, op):
    field = door.field
    a, _ = samples(field)
    out = door(op, field.encode(a))
    assert decoded(field, out) == [UNARY[op](x) % field.modulus for x in a]


@every_door
@pytest.mark.parametrize("op", ASSIGNING)
def test_assigning_forms_are_those_of_integers_on_two_objects_and_on_one(door, op):
    field = door.field
    a, b = samples(field)
    p = field.modulus
    out = door(op, field.encode(a), field.encode(b))
    assert decoded(field, out) == [ASSIGNING[op](x, y) % p for x, y in zip(a, b, strict=True)]
    assert decoded(field, door(op, field.encode(a))) == [ASSIGNING[op](x, x) % p for x in a]


@every_door
def test_inverse_times_the_element_is_one_and_zero_stays_zero(door):
    field = door.field
    p = field.modulus
    a = oracle.edge_values(p, field.limbs) + random_ints(p, 100, 3)
    out = door("inverse", field.encode(a))
    assert decoded(field, out) == [pow(x, -1, p) if x else 0 for x in a]
    products = field.decode(door("multiply", out, field.encode(a)))
    assert products == [int(x != 0) for x in a]


@every_door
def test_power_is_that_of_integers(door):
    """Exponents 0, 1, p - 1 (Fermat), p - 2, all ones, single bits; 0^0 = 1."""
    field = door.field
    p, bits = field.modulus, 64 * field.limbs
    exponents = [0, 1, 2, 3, p - 1, p - 2, p, (1 << bits) - 1, 1 << (bits - 1), *random_ints(1 << bits, 3, 4)]
    bases = [0, 1, 2 % p, p - 1, *random_ints(p, 3, 5)]
    pairs = [(x, e) for x in bases for e in exponents]
    raw = np.frombuffer(b"".join(e.to_bytes(bits // 8, "little") for _, e in pairs), dtype=np.uint64)
    out = door("power", field.encode([x for x, _ in pairs]), raw.reshape(-1, field.limbs))
    assert decoded(field, out) == [pow(x, e, p) for x, e in pairs]


@every_door
def test_conversions_undo_one_another(door):
    field = door.field
    p = field.modulus
    a = oracle.edge_values(p, field.limbs) + random_ints(p, 200, 6)
    rows = door("from_canonical", field.encode_canonical(a))
    assert np.array_equal(rows, field.encode(a))
    assert np.array_equal(door("to_canonical", rows), field.encode_canonical(a))


def unreduced_rows(field) -> np.ndarray:
    """Any words: around p, 2p, ..., and up to R - 1."""
    p, top = field.modulus, 1 << 64 * field.limbs
    values = [p, p + 1, 2 * p - 1, 2 * p, top - 1, top - 2, top >> 1, *random_ints(top, 200, 7)]
    raw = b"".join((v % top).to_bytes(field.nbytes, "little") for v in values)
    return np.frombuffer(raw, dtype=np.uint64).reshape(-1, field.limbs)


@every_door
def test_a_product_reduces_its_second_operand(door):
    """The contract of mul: the second operand may be any integer of N words (the first may not)."""
    field = door.field
    rows = unreduced_rows(field)
    values = field.decode_canonical(rows)
    out = door("from_canonical", rows)
    assert decoded(field, out) == [v % field.modulus for v in values]
    for other in (0, 1, field.modulus - 1, *random_ints(field.modulus, 3, 8)):
        first = np.repeat(field.encode([other]), len(rows), axis=0)
        expected = [v * other % field.modulus for v in field.decode(rows)]
        assert decoded(field, door("multiply", first, rows)) == expected


@every_door
def test_the_product_of_constant_expressions_is_the_product_at_run_time(door):
    field = door.field
    a, b = samples(field)
    x, y = field.encode(a), field.encode(b)
    assert np.array_equal(door("product", x, y), door("multiply", x, y))
    wild = unreduced_rows(field)
    one = np.repeat(field.encode([1]), len(wild), axis=0)
    assert np.array_equal(door("product", one, wild), door("multiply", one, wild))


def test_products_of_words_never_overflow():
    top = (1 << 64) - 1
    words = [0, 1, 2, 0xFFFFFFFF, 1 << 32, (1 << 32) + 1, 1 << 63, top - 1, top]
    cases = [(a, b, c, d) for a in words for b in words for c in (0, 1, top) for d in (0, 1, top)]
    random = random_ints(1 << 64, 400, 9)
    cases += zip(random[::4], random[1::4], random[2::4], random[3::4], strict=True)
    for a, b, c, d in cases:
        assert probe.multiply_words(a, b, c, d) == (a * b + c + d,) * 2


@pytest.mark.parametrize("door", REAL_DOORS, ids=by_name)
@given(data=st.data())
def test_the_field_laws(door, data):
    field = door.field
    a, b, c = (field.encode([data.draw(some_elements(field), label=n)]) for n in "abc")
    f = door

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


@pytest.mark.parametrize("door", REAL_DOORS, ids=by_name)
def test_operations_are_those_of_flint(door):
    field = door.field
    ring = flint.fmpz_mod_ctx(field.modulus)
    a, b = samples(field)
    x, y = field.encode(a), field.encode(b)
    pairs = [(ring(u), ring(v)) for u, v in zip(a, b, strict=True)]
    for op, law in BINARY.items():
        assert field.decode(door(op, x, y)) == [int(law(u, v)) for u, v in pairs]
    inverses = [int(u.inverse()) if u != 0 else 0 for u, _ in pairs[-500:]]
    assert field.decode(door("inverse", x[-500:])) == inverses


@pytest.mark.parametrize("door", [d for d in REAL_DOORS if not d.field.is_scalar], ids=by_name)
def test_operations_are_those_of_py_ecc(door):
    field = door.field
    other = bn128_FQ if field is BN254.fp else bls12_381_FQ
    a, b = edge_pairs(field)
    x, y = field.encode(a), field.encode(b)
    for op, law in BINARY.items():
        expected = [law(other(u), other(v)).n for u, v in zip(a, b, strict=True)]
        assert field.decode(door(op, x, y)) == expected
    quotient = door("multiply", x, door("inverse", y))
    expected = [(other(u) / other(v)).n if v else 0 for u, v in zip(a, b, strict=True)]
    assert field.decode(quotient) == expected


@pytest.mark.parametrize("door", [d for d in REAL_DOORS if d.field is BLS12_381.fr], ids=by_name)
def test_operations_are_those_of_py_arkworks(door):
    field = door.field
    a, b = samples(field)

    def scalar(k):
        return arkworks.Scalar.from_le_bytes(k.to_bytes(32, "little"))

    pairs = [(scalar(u), scalar(v)) for u, v in zip(a, b, strict=True)]
    for op, law in BINARY.items():
        out = door(op, field.encode(a), field.encode(b))
        assert field.decode(out) == [int(law(u, v)) for u, v in pairs]

# SPDX-License-Identifier: Apache-2.0
"""The quadratic extension F_p[u] / (u^2 + 1): every operation of the template against Python integers and py_ecc."""

from __future__ import annotations

import flint
import numpy as np
import oracle
import probe
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_ecc.fields import bls12_381_FQ2, bn128_FQ2
from references import CURVES, by_name, random_ints

from pinzk.curves import BN254

DOORS = [probe.FieldDoor(c.fp, m, 2) for c in CURVES for m in probe.machines(c.name)]
REAL_DOORS = [d for d in DOORS if d.field.curve_name != "toy"]
every_door = pytest.mark.parametrize("door", DOORS, ids=by_name)


def op(door, name, a, b=None):
    """The template's operation on lists of pairs."""
    field = door.field
    rows = door(name, encode(field, a), None if b is None else encode(field, b))
    assert all(v < field.modulus for v in field.decode_canonical(rows))
    return decode(field, rows)


def encode(field, pairs):
    return field.encode([v for pair in pairs for v in pair]).reshape(-1, 2 * field.limbs)


def decode(field, rows):
    flat = field.decode(rows)
    return list(zip(flat[::2], flat[1::2], strict=True))


def elements(field, seed: int = 1) -> list[tuple[int, int]]:
    """Pairs of the sharpest edge values, zeros in either place, then random ones."""
    p = field.modulus
    edges = [0, 1, 2, p - 1, p - 2, p // 2, p // 2 + 1, pow(2, 64 * field.limbs, p)]
    pairs = [(a, b) for a in edges for b in edges]
    random = random_ints(p, 60, seed)
    return pairs + list(zip(random[::2], random[1::2], strict=True)) + [(0, random[0]), (random[1], 0)]


def all_pairs(field):
    e = elements(field)
    return [x for x in e for _ in e], e * len(e)


@every_door
@pytest.mark.parametrize(
    ("name", "law"), [("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("add_to", "add"),
                      ("subtract_from", "sub"), ("multiply_by", "mul")]
)  # fmt: skip
def test_binary_operations_are_those_of_pairs_of_integers(door, name, law):
    field = door.field
    f = oracle.QuadraticField(field.modulus)
    a, b = all_pairs(field)
    assert op(door, name, a, b) == [getattr(f, law)(x, y) for x, y in zip(a, b, strict=True)]
    if name != law:
        e = elements(field)
        assert op(door, name, e) == [getattr(f, law)(x, x) for x in e]  # on one object


@every_door
def test_unary_operations_are_those_of_pairs_of_integers(door):
    field = door.field
    f = oracle.QuadraticField(field.modulus)
    e = elements(field)
    assert op(door, "negate", e) == [f.neg(x) for x in e]
    assert op(door, "twice", e) == [f.add(x, x) for x in e]
    assert op(door, "square", e) == [f.mul(x, x) for x in e]
    assert op(door, "conjugate", e) == [(x[0], -x[1] % field.modulus) for x in e]
    assert op(door, "times", e, e[::-1]) == [f.mul(x, (y[0], 0)) for x, y in zip(e, e[::-1], strict=True)]


@every_door
def test_inverse_times_the_element_is_one_and_zero_stays_zero(door):
    field = door.field
    f = oracle.QuadraticField(field.modulus)
    e = elements(field)
    inverses = op(door, "inverse", e)
    assert inverses == [f.inverse(x) if x != f.zero else f.zero for x in e]
    assert op(door, "multiply", e, inverses) == [f.one if x != f.zero else f.zero for x in e]


@every_door
def test_u_squared_is_minus_one(door):
    field = door.field
    assert op(door, "square", [(0, 1)]) == [(field.modulus - 1, 0)]
    assert op(door, "multiply", [(0, 1)], [(0, 1)]) == [(field.modulus - 1, 0)]
    assert (
        pow(field.modulus - 1, (field.modulus - 1) // 2, field.modulus) == field.modulus - 1
    )  # -1 is no square


@every_door
def test_the_conjugate_is_the_frobenius_power(door):
    field = door.field
    f = oracle.QuadraticField(field.modulus)
    e = elements(field)[-8:]
    assert op(door, "conjugate", e) == [f.power(x, field.modulus) for x in e]


@pytest.mark.parametrize("door", REAL_DOORS, ids=by_name)
@given(data=st.data())
def test_the_field_laws(door, data):
    field = door.field
    one = st.one_of(st.sampled_from([0, 1, field.modulus - 1]), st.integers(0, field.modulus - 1))
    a, b, c = ([data.draw(st.tuples(one, one), label=n)] for n in "abc")

    def f(name, x, y=None):
        return op(door, name, x, y)

    assert f("multiply", a, b) == f("multiply", b, a)
    assert f("multiply", f("multiply", a, b), c) == f("multiply", a, f("multiply", b, c))
    assert f("multiply", a, f("add", b, c)) == f("add", f("multiply", a, b), f("multiply", a, c))
    assert f("square", a) == f("multiply", a, a)
    assert f("inverse", f("multiply", a, b)) == f("multiply", f("inverse", a), f("inverse", b))
    assert f("conjugate", f("multiply", a, b)) == f("multiply", f("conjugate", a), f("conjugate", b))
    assert f("multiply", a, f("conjugate", a))[0][1] == 0  # the norm lies in F_p


@pytest.mark.parametrize("door", REAL_DOORS, ids=by_name)
def test_operations_are_those_of_py_ecc(door):
    field = door.field
    other = bn128_FQ2 if field is BN254.fp else bls12_381_FQ2
    a, b = elements(field, 2), elements(field, 3)[::-1]
    pairs = [(other(x), other(y)) for x, y in zip(a, b, strict=True)]

    def ints(values):
        return [tuple(int(c) for c in v.coeffs) for v in values]

    assert op(door, "add", a, b) == ints(x + y for x, y in pairs)
    assert op(door, "subtract", a, b) == ints(x - y for x, y in pairs)
    assert op(door, "multiply", a, b) == ints(x * y for x, y in pairs)
    nonzero = [x for x in a if x != (0, 0)]
    assert op(door, "inverse", nonzero) == ints(other(x).inv() for x in nonzero)


@every_door
def test_operations_are_those_of_flint(door):
    field = door.field
    p = field.modulus
    ring = flint.fmpz_mod_poly_ctx(flint.fmpz_mod_ctx(p))
    extension = flint.fq_default_ctx(modulus=ring([1, 0, 1]), var="u")
    a, b = elements(field, 4), elements(field, 5)[::-1]

    def ints(x):
        c = [int(v) for v in x.to_list()]
        return (c[0], c[1])

    pairs = [(extension(list(x)), extension(list(y))) for x, y in zip(a, b, strict=True)]
    assert op(door, "multiply", a, b) == [ints(x * y) for x, y in pairs]
    nonzero = [x for x in a if x != (0, 0)]
    assert op(door, "inverse", nonzero) == [ints(extension(list(x)).inverse()) for x in nonzero]


@every_door
def test_equal_rows_only_for_equal_elements(door):
    """Elements are reduced, so that comparing words compares elements."""
    field = door.field
    e = elements(field)
    total = door("add", encode(field, e), encode(field, e[::-1]))
    back = door("subtract", total, encode(field, e[::-1]))
    assert np.array_equal(back, encode(field, e))

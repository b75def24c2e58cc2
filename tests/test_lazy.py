# SPDX-License-Identifier: Apache-2.0
"""The GPU's lazy residues and fixed operands, their carry flag emulated on the host: values and bounds against integers."""

from __future__ import annotations

import random

import numpy as np
import probe
import pytest

from pinzk import BLS12_381, BN254
from pinzk._testing import TOY
from pinzk.curves import Field, Words

FIELDS = [BN254.fr, BLS12_381.fr, TOY.fr]
pytestmark = pytest.mark.parametrize("field", FIELDS, ids=[f.name for f in FIELDS])


def rows(values: list[int], field: Field) -> Words:
    raw = b"".join(v.to_bytes(field.nbytes, "little") for v in values)
    return np.frombuffer(raw, dtype=np.uint64).reshape(-1, field.limbs)


def ints(array: Words, field: Field) -> list[int]:
    return field.decode_canonical(array)


def operands(field: Field, n: int = 3000) -> tuple[list[int], list[int], list[int]]:
    """Two lists below 2p and one below p: every pair of edges, then random ones."""
    rng, p = random.Random(field.name), field.modulus
    wide = sorted(
        {v for v in (0, 1, 2, p - 1, p, p + 1, 2 * p - 2, 2 * p - 1, 1 << 32, 1 << 64) if v < 2 * p}
    )
    narrow = sorted({v for v in (0, 1, 2, p - 1, p // 2, 1 << 32, 1 << 64) if v < p})
    edges = [(a, b, c) for a in wide for b in wide for c in narrow]
    edges += [(rng.randrange(2 * p), rng.randrange(2 * p), rng.randrange(p)) for _ in range(n)]
    a, b, c = (list(v) for v in zip(*edges, strict=True))
    return a, b, c


def run(field: Field, op: str, a: list[int], b: list[int], c: list[int]) -> list[int]:
    montgomery = field.encode(c)
    return ints(probe.lazy_op(field, op, rows(a, field), rows(b, field), montgomery), field)


@pytest.mark.parametrize("op", probe.LAZY_OPS)
def test_lazy_operation_is_right_modulo_p_and_stays_below_2p(field: Field, op: str) -> None:
    p, radix = field.modulus, 1 << 8 * field.nbytes
    a, b, c = operands(field)
    got = run(field, op, a, b, c)
    if op == "quotient":
        assert got == [x * radix // p for x in c]
        return
    want = {
        "add": lambda x, y, z: x + y,
        "subtract": lambda x, y, z: x - y,
        "canonical": lambda x, y, z: x,
        "times_fixed": lambda x, y, z: x * z,
        # c is a Montgomery residue: its factor R and the product's 1/R cancel
        "times": lambda x, y, z: x * z,
        "loose_add": lambda x, y, z: (x + y) * z,
        "loose_subtract": lambda x, y, z: (x - y) * z,
    }[op]
    assert [v % p for v in got] == [want(*v) % p for v in zip(a, b, c, strict=True)]
    assert max(got) < (p if op == "canonical" else 2 * p)


def test_product_by_a_fixed_operand_keeps_the_proven_bound(field: Field) -> None:
    """Below p (1 + x / R + 2^-29); the largest value met passes p, so the bound is not idle."""
    p, radix = field.modulus, 1 << 8 * field.nbytes
    a, b, c = operands(field)
    got = run(field, "times_fixed", a, b, c)
    assert all(v * radix < p * (radix + x + (radix >> 29)) for v, x in zip(got, a, strict=True))
    if p.bit_length() > 200:
        assert max(got) > p

# SPDX-License-Identifier: Apache-2.0
"""A prepared key's quotient against the plain ones, in the exponent. Division by Z: `test_stages.py`; GPU: `tests/gpu`."""

from __future__ import annotations

import random

import numpy as np
import pytest
from references import CURVES

from pinzk import BN254, Domain
from pinzk._core import cpu
from pinzk.curves import Curve
from pinzk.stages import quotient
from pinzk.stages.device_quotient import bit_reversed

KINDS = [(c, root) for c in CURVES for root in ("snarkjs", "bellman")]
every_kind = pytest.mark.parametrize(("curve", "root"), KINDS, ids=[f"{c.name}-{r}" for c, r in KINDS])


@every_kind
@pytest.mark.parametrize("log_n", [0, 1, 3, 4])
def test_a_prepared_key_gives_what_the_plain_key_gives(curve: Curve, root: str, log_n: int) -> None:
    """Keys are written as the scalars of their points; the top power of tau is missing, as in a bellman key."""
    fr, r = curve.fr, curve.fr.modulus
    domain, draw = Domain(curve, log_n, root=root), random.Random(log_n)
    n, wires = domain.size, 6
    m = max(n - 1, 1)  # one row of padding

    def matrix() -> list[list[int]]:
        return [[draw.choice([0, 0, 1, draw.randrange(r)]) for _ in range(wires)] for _ in range(m)]

    A, B, C = matrix(), matrix(), matrix()
    w = [1] + [draw.randrange(1, r) for _ in range(wires - 1)]

    def times(matrix: list[list[int]]) -> list[int]:
        rows = [sum(x * y for x, y in zip(row, w, strict=True)) % r for row in matrix]
        return rows + [0] * (n - m)

    for row, x, y, z in zip(C, times(A), times(B), times(C), strict=False):
        row[0] = (row[0] + x * y - z) % r
    a, b, c = (fr.encode(times(matrix)) for matrix in (A, B, C))

    def interpolated(values: list[int]) -> list[int]:
        return fr.decode(domain.intt(fr.encode(values)))

    tau, delta = draw.randrange(2, r), draw.randrange(1, r)
    while pow(tau, n, r) == 1:
        tau = draw.randrange(2, r)
    z_at_tau = (pow(tau, n, r) - 1) * pow(delta, -1, r)
    powers = [pow(tau, i, r) * z_at_tau % r for i in range(n - 1)] + [0]
    z = (pow(domain.default_shift, n, r) - 1) % r
    # Lagrange points of the coset: sum_j lagrange_j p(x_j) = sum_i powers_i p_i for every p of n coefficients
    units = np.eye(n, dtype=np.int64).tolist()
    lagrange = [
        sum(p * k for p, k in zip(powers, fr.decode(domain.coset_intt(fr.encode(u))), strict=True))
        for u in units
    ]
    columns = [[row[i] for row in C] + [0] * (n - m) for i in range(wires)]
    c_points = [sum(p * k for p, k in zip(powers, interpolated(column), strict=True)) for column in columns]

    h = quotient.prepared(domain, a.copy(), b.copy())
    got = sum(x * point for x, point in zip(fr.decode(h), lagrange, strict=True))
    got = (got - sum(x * point for x, point in zip(w, c_points, strict=True))) * pow(z, -1, r) % r

    plain = quotient.bellman(domain, a.copy(), b.copy(), c.copy())
    assert got == sum(x * p for x, p in zip(fr.decode(plain), powers, strict=False)) % r
    if root == "snarkjs":  # 1 / z is inside such a key's points
        plain = quotient.snarkjs(domain, a.copy(), b.copy())
        assert (
            got
            == sum(x * point * pow(z, -1, r) for x, point in zip(fr.decode(plain), lagrange, strict=True)) % r
        )


@pytest.mark.parametrize("log_n", [0, 1, 2, 5])
def test_bit_reversed_order_is_that_of_the_transforms(log_n: int) -> None:
    rows = np.repeat(np.arange(1 << log_n, dtype=np.uint64)[:, None], 4, axis=1)
    cpu.bit_reverse(BN254.fr, rows)
    assert bit_reversed(log_n).tolist() == rows[:-1, 0].tolist()

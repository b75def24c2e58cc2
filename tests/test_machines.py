# SPDX-License-Identifier: Apache-2.0
"""Every machine type's loops give the same words: portable, ADX, and eight lanes of IFMA, as far as this processor has them.

The other tests run on the best one; here the lesser ones do the same work, and sizes and inputs reach what is special to
lanes: whole and incomplete blocks of eight, pairs without a slope, every size of transform near their limits.
"""

from __future__ import annotations

import numpy as np
import pytest
from references import CURVES, REAL_GROUPS, by_name, known_multiples, random_ints

from pinzk._core import cpu

BEST = cpu.machine()
LESSER = [m for m in ("portable", "adx") if m != BEST]
scalar_fields = pytest.mark.parametrize("field", [c.fr for c in CURVES[:2]], ids=by_name)
real_groups = pytest.mark.parametrize("group", REAL_GROUPS, ids=by_name)


@pytest.fixture(autouse=True)
def best_machine_again():
    yield
    cpu.machine(BEST)


def on_every_machine(call) -> None:
    """call() gives the same array on each."""
    assert cpu.machine() == BEST
    expected = call()
    for name in LESSER:
        if cpu.machine(name) == name:
            assert np.array_equal(call(), expected), name
    cpu.machine(BEST)


def test_a_machine_is_named_and_chosen():
    assert cpu.machine("portable") == cpu.machine() == "portable"
    assert cpu.machine("lanes") == BEST
    with pytest.raises(ValueError, match="'portable', 'adx', 'lanes'"):
        cpu.machine("abacus")


@scalar_fields
@pytest.mark.parametrize("log_n", range(15))
def test_transforms(field, log_n):
    n, r = 1 << log_n, field.modulus
    root = pow(5, (r - 1) >> log_n, r)
    edges = [0, 1, r - 1, r - 2, r // 2]
    data = field.encode((edges + random_ints(r, n, log_n))[:n])
    table = cpu.twiddles(field, root, n)

    def run(transform, rows):
        out = rows.copy()
        transform(field, out, table)
        return out

    largest = np.tile(field.encode_canonical([r - 1]), (n, 1))
    for transform in (cpu.dif, cpu.dit):
        on_every_machine(lambda transform=transform: run(transform, data))
        on_every_machine(lambda transform=transform: run(transform, largest))


@real_groups
@pytest.mark.parametrize("n", [64, 127, 128, 129, 135, 1000, 4097])
def test_multi_scalar_products(group, n):
    scalars = group.scalar.encode_canonical(random_ints(group.scalar.modulus, n, n))
    rows = np.ascontiguousarray(known_multiples(group, 4097)[1][:n])
    on_every_machine(lambda: cpu.msm(group, rows, scalars))


@real_groups
def test_sums_without_slopes(group):
    """Equal points, opposite points and infinities fill the buckets: every pair of some blocks, some pairs of others."""
    n = 1024
    _, rows = known_multiples(group, 4097)
    rng = np.random.default_rng(1)
    opposite = group.encode(negative(group, p) for p in group.decode(rows[:8]))
    eight = np.concatenate([rows[:8], opposite, np.zeros_like(rows[:1])])
    ones = group.scalar.encode_canonical([1] * n)
    small = group.scalar.encode_canonical(rng.integers(0, 4, n).tolist())
    wide = group.scalar.encode_canonical(random_ints(group.scalar.modulus, 5, 3))
    for bases in (
        np.tile(rows[:1], (n, 1)),
        eight[rng.integers(0, len(eight), n)],
        np.concatenate(
            [rows[: n // 2], group.encode(negative(group, p) for p in group.decode(rows[: n // 2]))]
        ),
        np.where(rng.random((n, 1)) < 0.02, rows[:1], rows[:n]),
    ):
        bases = np.ascontiguousarray(bases)
        for scalars in (ones, small, wide[rng.integers(0, 5, n)]):
            on_every_machine(lambda b=bases, s=scalars: cpu.msm(group, b, s))


@real_groups
def test_multiples_of_one_base(group):
    r = group.scalar.modulus
    scalars = group.scalar.encode_canonical([0, 1, 2, r - 1, r // 2, *random_ints(r, 300, 5)])
    on_every_machine(lambda: cpu.fixed_base(group, group.encode([group.generator()]), scalars))


def negative(group, p):
    q = group.base.modulus
    if p is None:
        return None
    x, y = p
    return (x, -y % q) if group.number == 1 else (x, tuple(-c % q for c in y))

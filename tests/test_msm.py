# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar products of the CPU backend: known discrete logarithms, the edge table, independent libraries.

Bases are k_i G with known k_i, so sum s_i (k_i G) = (sum s_i k_i) G: one multiple of G, computed by another library.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
import references
from references import GROUPS, REAL_GROUPS, by_name, known_multiples, multiple_of_generator, random_ints

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254

every_group = pytest.mark.parametrize("group", GROUPS, ids=by_name)
SIZES = [*range(34), 237, *(2**k + d for k in range(6, 15) for d in (-1, 0, 1))]
LARGEST = max(SIZES)


def check(group, logs, rows, scalars, **kw) -> None:
    """msm(rows, scalars) is (sum logs * scalars) G."""
    r = group.scalar.modulus
    expected = multiple_of_generator(group, sum(k * s for k, s in zip(logs, scalars, strict=True)) % r)
    out = cpu.msm(group, np.ascontiguousarray(rows), group.scalar.encode_canonical(scalars), **kw)
    assert out.shape == (1, group.limbs)
    assert group.decode(out) == [expected]


@every_group
def test_msm_is_the_sum_at_every_size(group):
    logs, rows = known_multiples(group, LARGEST)
    scalars = random_ints(group.scalar.modulus, LARGEST, 1)
    for n in SIZES:
        check(group, logs[:n], rows[:n], scalars[:n])


@every_group
def test_no_points_sum_to_infinity(group):
    assert not cpu.msm(group, group.encode([]), group.scalar.encode_canonical([])).any()


@every_group
@pytest.mark.parametrize("n", [1, 2, 5, 31, 32, 33, 100, 300])
def test_edge_scalars_times_any_base(group, n):
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    edges = oracle.edge_values(r, 4)
    for start in range(0, len(edges), max(1, min(n, 16))):
        check(group, logs[:n], rows[:n], [edges[(start + i) % len(edges)] for i in range(n)])


def extreme_scalars(r: int, width: int) -> list[int]:
    """Scalars whose digits of `width` bits are extreme: half a window and its neighbours, all ones, the top carry."""
    half, full = 1 << (width - 1), (1 << width) - 1
    patterns = [
        [half],
        [half + 1],
        [half - 1],
        [full],
        [full, 0],
        [0, full],
        [half, full],
        [full, half - 1],
        [1],
        [half, 0],
    ]
    scalars = []
    for pattern in patterns:
        value = sum(pattern[w % len(pattern)] << (w * width) for w in range(256 // width + 1))
        value &= (1 << r.bit_length()) - 1
        scalars += [value if value < r else value & ((1 << (r.bit_length() - 1)) - 1)]
    top = r.bit_length() // width * width
    # the largest top digits, then a carry that runs into the top window
    scalars += [r - 1 - (1 << (width * w)) for w in {0, 1, max(top // width - 1, 0)}]
    scalars += [(1 << top) - 1, (1 << top) - (1 << max(top - width, 0))]
    scalars += [(r >> top << top) | ((1 << top) - 1)]  # a full window below the largest top digit
    return [k % r for k in scalars]


@every_group
@pytest.mark.parametrize("n", [1, 31, 33, 200, 1500])
def test_extreme_digits_of_every_window_width(group, n):
    r = group.scalar.modulus
    scalars = [k for width in range(1, 21) for k in extreme_scalars(r, width)]
    logs, rows = known_multiples(group, LARGEST)
    if n == 1:
        for k in dict.fromkeys(scalars[::3]):
            check(group, logs[7:8], rows[7:8], [k])
    else:
        for start in range(0, len(scalars), n):
            chosen = [scalars[(start + i) % len(scalars)] for i in range(n)]
            check(group, logs[:n], rows[:n], chosen)


@pytest.mark.parametrize(("group", "n"), [(BN254.g1, 1 << 18), (BN254.g1, 70001), (BLS12_381.g1, 70001)])
def test_wide_windows(group, n):
    """Sizes at which the windows are widest, with random and with extreme digits; the bases repeat."""
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    tiles = -(-n // LARGEST)
    extreme = [k for width in range(10, 21) for k in extreme_scalars(r, width)]
    scalars = random_ints(r, n - 1000, 11) + (extreme * 10)[:1000]
    check(group, (logs * tiles)[:n], np.tile(rows, (tiles, 1))[:n], scalars)


@every_group
@pytest.mark.parametrize("n", [2, 40, 1000, 9001])
def test_all_scalars_equal(group, n):
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    for k in (0, 1, 2, r - 1, r // 2, random_ints(r, 1, 5)[0]):
        check(group, logs[:n], rows[:n], [k] * n)


@every_group
@pytest.mark.parametrize("n", [3, 33, 700])
def test_infinity_first_middle_last_everywhere(group, n):
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    scalars = random_ints(r, n, 3)
    for places in (
        [0],
        [n // 2],
        [n - 1],
        [0, n // 2, n - 1],
        range(n),
        range(1, n),
        range(n - 1),
        range(0, n, 2),
    ):
        holed, known = rows[:n].copy(), list(logs[:n])
        for i in places:
            holed[i] = 0
            known[i] = 0
        check(group, known, holed, scalars)
        check(group, known, holed, [1] * n)
        check(group, known, holed, [r - 1] * n)


@every_group
@pytest.mark.parametrize("n", [2, 31, 64, 129, 2000, 7001])
def test_all_bases_equal(group, n):
    """Every bucket is filled with copies of one point: doublings wherever two meet."""
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    bases = np.repeat(rows[3:4], n, axis=0)
    for scalars in (random_ints(r, n, 4), [1] * n, [r - 1] * n, [5] * n, [k % r for k in range(n)]):
        check(group, [logs[3]] * n, bases, scalars)


@every_group
@pytest.mark.parametrize("n", [2, 4, 32, 34, 256, 1002, 7000])
def test_opposite_points_cancel_in_one_bucket(group, n):
    r = group.scalar.modulus
    curve = oracle.weierstrass(group)
    logs, rows = known_multiples(group, LARGEST)
    log, point = logs[9], group.decode(rows[9:10])[0]
    pair = group.encode([point, curve.neg(point)])
    for bases, known in (
        (np.tile(pair, (n // 2, 1)), [log, -log] * (n // 2)),  # P, -P adjacent
        (np.repeat(pair, n // 2, axis=0), [log] * (n // 2) + [-log] * (n // 2)),  # all P, then all -P
    ):
        for scalars in ([1] * n, [r - 1] * n, [77 % r] * n, random_ints(r, n, 6)):
            check(group, known, bases, scalars)
    # P and P with opposite scalars: the signs come from the digits
    check(group, [log] * n, np.repeat(pair[:1], n, axis=0), [3, r - 3] * (n // 2))


@every_group
@pytest.mark.parametrize("n", [60, 2048, 5000])
def test_scalars_of_mostly_zeros_and_ones(group, n):
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    scalars = random_ints(r, n, 8)
    which = np.random.default_rng(8).integers(0, 100, n)
    scalars = [k if w < 10 else int(w) % 2 for k, w in zip(scalars, which, strict=True)]
    check(group, logs[:n], rows[:n], scalars)
    check(group, logs[:n], rows[:n], [int(w) % 2 for w in which])
    check(group, logs[:n], rows[:n], [k if w == 50 else 0 for k, w in zip(scalars, which, strict=True)])


@every_group
@pytest.mark.parametrize("n", [50, 3000])
def test_short_scalars(group, n):
    """Bits, bytes, 32-bit and 64-bit words: what real witnesses are made of."""
    r = group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    for bits in (1, 2, 8, 32, 64, 65, 128):
        check(group, logs[:n], rows[:n], [k % min(r, 1 << bits) for k in random_ints(r, n, bits)])


@every_group
def test_a_split_sum_is_the_sum_of_its_parts(group):
    _, rows = known_multiples(group, LARGEST)
    scalars = group.scalar.encode_canonical(random_ints(group.scalar.modulus, 500, 12))
    curve = oracle.weierstrass(group)
    whole, left, right = (
        group.decode(cpu.msm(group, rows[s].copy(), scalars[s].copy()))[0]
        for s in (slice(0, 500), slice(0, 123), slice(123, 500))
    )
    assert whole == curve.add(left, right)


@pytest.mark.parametrize("group", oracle.groups(BLS12_381), ids=by_name)
def test_msm_is_that_of_py_arkworks(group):
    n = 300
    points = [group.decode(row)[0] for row in known_multiples(group, LARGEST)[1][:n]]
    scalars = random_ints(group.scalar.modulus, n, 13)
    theirs = references.arkworks_class(group).multiexp_unchecked(
        [references.to_arkworks(group, p) for p in points], [references.arkworks_scalar(k) for k in scalars]
    )
    ours = cpu.msm(group, group.encode(points), group.scalar.encode_canonical(scalars))
    assert group.decode(ours) == [references.from_arkworks(theirs)]


@pytest.mark.parametrize("group", REAL_GROUPS, ids=by_name)
def test_msm_is_that_of_zksnake(group):
    n = 300
    points = [group.decode(row)[0] for row in known_multiples(group, LARGEST)[1][:n]]
    scalars = random_ints(group.scalar.modulus, n, 14)
    theirs = references.zksnake_curve(group).multiexp(
        [references.to_zksnake(group, p) for p in points], scalars
    )
    ours = cpu.msm(group, group.encode(points), group.scalar.encode_canonical(scalars))
    assert group.decode(ours) == [references.from_zksnake(theirs)]


@every_group
def test_msm_of_few_points_is_the_oracle_s(group):
    curve = oracle.weierstrass(group)
    points = [*group.decode(known_multiples(group, LARGEST)[1][:5]), None]
    scalars = random_ints(group.scalar.modulus, len(points), 15)
    ours = cpu.msm(group, group.encode(points), group.scalar.encode_canonical(scalars))
    assert group.decode(ours) == [curve.msm(points, scalars)]


# ---- multiples of one base ----


@every_group
@pytest.mark.parametrize("n", [0, 1, 2, 33, 600])
def test_fixed_base_is_every_multiple(group, n):
    r = group.scalar.modulus
    edges = oracle.edge_values(r, 4)
    scalars = (edges + [k for w in (4, 8, 11) for k in extreme_scalars(r, w)] + random_ints(r, n, 2))[:n]
    out = cpu.fixed_base(group, cpu.generator(group), group.scalar.encode_canonical(scalars))
    assert out.shape == (n, group.limbs)
    assert group.decode(out) == [multiple_of_generator(group, k) for k in scalars]


@every_group
@pytest.mark.parametrize("log", [0, 1, 5, -1])
def test_fixed_base_of_any_base(group, log):
    r = group.scalar.modulus
    base = group.encode([multiple_of_generator(group, log % r)])
    scalars = [*random_ints(r, 20, 2), 0, 1, r - 1, 2]
    out = cpu.fixed_base(group, base, group.scalar.encode_canonical(scalars))
    assert group.decode(out) == [multiple_of_generator(group, k * log % r) for k in scalars]


@every_group
@pytest.mark.parametrize(("sets", "width"), [(1, 1), (1, 2), (1, 7), (3, 4), (5, 1)])
def test_a_weighted_sum_is_the_sum_of_weighted_rows(group, sets, width):
    """V_0 counts once, V_k 2^(k-1) times, a set 2^width times as much as the one before; rows may be infinity."""
    r, n = group.scalar.modulus, sets * width
    logs, points = known_multiples(group, LARGEST)
    rows = np.zeros((n, 2 * group.limbs), np.uint64)
    one = np.zeros(group.limbs // 2, np.uint64)
    one[: group.base.limbs] = group.base.encode([1])[0]
    total = 0
    for i in range(n):
        if i % 5 != 3 and points[i].any():
            rows[i] = np.concatenate([points[i], one, one])
            k = i % width
            total += logs[i] << (width * (i // width) + max(k - 1, 0))
    assert group.decode(cpu.weighted_sum(group, rows, width)) == [multiple_of_generator(group, total % r)]
    with pytest.raises(ValueError, match="no whole sets"):
        cpu.weighted_sum(group, rows, n + 1)


@every_group
def test_the_generator_is_the_standard_one(group):
    assert group.decode(cpu.generator(group)) == [group.generator()]


@pytest.mark.parametrize("group", REAL_GROUPS, ids=by_name)
def test_the_generator_is_that_of_other_libraries(group):
    assert references.from_zksnake(references.zksnake_generator(group)) == group.generator()
    if group.curve_name == "bls12_381":
        assert references.from_arkworks(references.arkworks_class(group)()) == group.generator()


def test_wrong_shapes_are_refused():
    g = BN254.g1
    _, rows = known_multiples(g, LARGEST)
    scalars = BN254.fr.encode_canonical([1, 2, 3])
    with pytest.raises(ValueError, match="lengths differ: 2 and 3"):
        cpu.msm(g, rows[:2].copy(), scalars)
    with pytest.raises(ValueError, match=r"bases must have shape \(n, 8\), not \(3, 16\)"):
        cpu.msm(g, np.zeros((3, 16), dtype=np.uint64), scalars)
    with pytest.raises(ValueError, match="scalars must have shape"):
        cpu.msm(g, rows[:3].copy(), np.zeros((3, 6), dtype=np.uint64))
    with pytest.raises(ValueError, match="base must be one point"):
        cpu.fixed_base(g, rows[:2].copy(), scalars)

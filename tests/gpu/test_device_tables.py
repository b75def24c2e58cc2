# SPDX-License-Identifier: Apache-2.0
"""Tables of multiples and products of one base on a GPU, against the CPU backend; the toy curve exhaustively."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from references import CURVES, GROUPS, by_name, multiple_of_generator
from simulator import SIMULATED

from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Group, Words
from pinzk.stages.device_tables import DeviceTables, FixedBase

every_group = pytest.mark.parametrize("group", GROUPS, ids=by_name)
TOY = [g for c in CURVES if c.name == "toy" for g in oracle.groups(c)]


def points(group: Group, scalars: list[int]) -> Words:
    return cpu.fixed_base(group, cpu.generator(group), group.scalar.encode_canonical(scalars))


def upload(elem, rows: Words, device: Device, stream: Stream, capacity: int | None = None) -> DeviceVec:
    v = DeviceVec(elem, capacity or len(rows), device)
    pinned = PinnedVec.from_array(elem, rows)
    v.upload(pinned, stream)
    pinned.release()
    return v


def download(v: DeviceVec, stream: Stream) -> Words:
    pinned = PinnedVec(v.elem, len(v))
    pinned.resize(len(v))
    v.download(pinned, stream)
    stream.synchronize()
    out = np.array(pinned.borrow().numpy())
    pinned.release()
    return out


def table(group: Group, scalars: list[int], spacing: int, multiples: int, device: Device, **options) -> Words:
    """The table on the device, of scalars times the generator; 0 is infinity."""
    stream = Stream(device)
    n = len(scalars)
    v = upload(group, points(group, scalars), device, stream, multiples * n)
    DeviceTables(group, device, **options).extend(v, spacing, multiples, stream)
    return download(v, stream)


@every_group
@pytest.mark.parametrize(("spacing", "multiples"), [(1, 2), (5, 3), (17, 1)])
def test_tables_hold_powers_of_two_times_the_points(
    group: Group, spacing: int, multiples: int, device: Device
) -> None:
    """Infinity first, in the middle, last and by itself."""
    r = group.scalar.modulus
    for scalars in ([0, 1, 2, r - 1, 0, 7, 12345 % r, 0], [0], [3], [0, 0]):
        got = table(group, scalars, spacing, multiples, device)
        want = [k * (1 << spacing * j) % r for j in range(multiples) for k in scalars]
        assert np.array_equal(got, points(group, want))


@pytest.mark.parametrize("n", [127, 129, 1000 if SIMULATED else 70001])
def test_many_points_share_threads_and_pieces_of_scratch(n: int, device: Device) -> None:
    group = GROUPS[0]
    scalars = [(k * k + 1) % 65537 for k in range(n)]
    want = points(group, scalars + [k << 3 for k in scalars] + [k << 6 for k in scalars])
    element = group.nbytes // 2
    for scratch in (1, 3 * element * 100, 256 << 20):
        if scratch == 1 and n > 200:  # a piece for each point
            continue
        assert np.array_equal(table(group, scalars, 3, 3, device, scratch_bytes=scratch), want)


def test_no_table_of_another_length(device: Device) -> None:
    group, stream = GROUPS[0], Stream(device)
    tables = DeviceTables(group, device)
    with pytest.raises(ValueError, match=r"7 points .* capacity 13, do not become 2 times .* bn254\.g1"):
        tables.extend(upload(group, points(group, [1] * 7), device, stream, 13), 4, 2, stream)
    empty = DeviceVec(group, 0, device)
    tables.extend(empty, 4, 2, stream)


def products(group: Group, base: Words, scalars: Words, device: Device, **options) -> Words:
    stream = Stream(device)
    fixed = FixedBase(group, base, device, stream, **options)
    k = upload(group.scalar, scalars, device, stream)
    out = DeviceVec(group, len(scalars), device)
    out.commit(len(scalars))
    fixed.multiply(out, k, stream)
    got = download(out, stream)
    fixed.close()
    return got


@every_group
def test_products_of_a_base_equal_the_cpus(group: Group, device: Device) -> None:
    """0, small, near the order, powers of two, digits at their extremes; infinity as base."""
    r = group.scalar.modulus
    c = 3 if SIMULATED else 13
    edges = {0, 1, 2, 3, r - 1, r - 2, r // 2, r // 2 + 1, *(1 << k for k in range(0, r.bit_length() - 1, 5))}
    edges |= {sum((1 << (c - 1)) << (c * j) for j in range(n)) for n in range(1, 256 // c)}
    edges |= {sum(((1 << (c - 1)) + 1) << (c * j) for j in range(n)) for n in range(1, 256 // c)}
    rng = np.random.default_rng(5)
    scalars = sorted({k % r for k in edges}) + [
        int.from_bytes(rng.bytes(40), "little") % r for _ in range(20)
    ]
    rows = group.scalar.encode_canonical(scalars)
    base = points(group, [77 % r])
    assert np.array_equal(products(group, base, rows, device, window=c), cpu.fixed_base(group, base, rows))
    nothing = np.zeros_like(base)
    assert not products(group, nothing, rows, device, window=c).any()


@pytest.mark.parametrize("group", TOY, ids=by_name)
def test_all_products_of_a_toy_curve(group: Group, device: Device) -> None:
    rows = group.scalar.encode_canonical(range(97))
    for k in (1, 2, 55, 96):
        base = group.encode([multiple_of_generator(group, k)])
        got = products(group, base, rows, device, window=4, scratch_bytes=10 * 2 * group.nbytes)
        assert np.array_equal(got, cpu.fixed_base(group, base, rows))


def test_lengths_and_kinds_must_fit(device: Device) -> None:
    group, stream = GROUPS[0], Stream(device)
    fixed = FixedBase(group, points(group, [1]), device, stream, window=2)
    k = upload(group.scalar, group.scalar.encode_canonical([1, 2]), device, stream)
    out = DeviceVec(group, 3, device)
    out.commit(3)
    with pytest.raises(ValueError, match=r"2 scalars .* do not give 3 points"):
        fixed.multiply(out, k, stream)
    with pytest.raises(ValueError, match="window must be 2 to 20 bits, not 1"):
        FixedBase(group, points(group, [1]), device, stream, window=1)

# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar sums on a GPU: known discrete logarithms, the edge table; larger sizes against the CPU backend.

Bases are k_i G with known k_i, so the sum is one multiple of G. Largest sizes: ``benchmarks/bench_gpu_msm.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import pytest
from simulator import SIMULATED

from pinzk import BLS12_381, BN254
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk._testing import TOY
from pinzk.curves import Curve, Group, Words
from pinzk.errors import FormatError
from pinzk.stages.device_msm import DeviceMsm
from pinzk.stages.device_sort import DigitSorter, Windows, best_windows
from pinzk.stages.device_tables import DeviceTables


def by_name(record: Curve | Group) -> str:
    return record.name


REAL_GROUPS = [g for c in (BN254, BLS12_381) for g in (c.g1, c.g2)]
GROUPS = [*REAL_GROUPS, TOY.g1, TOY.g2]
every_group = pytest.mark.parametrize("group", GROUPS, ids=by_name)
LARGEST = 600


def random_ints(modulus: int, n: int, seed: int) -> list[int]:
    raw = np.random.default_rng(seed).bytes(48 * n)
    return [int.from_bytes(raw[48 * i : 48 * i + 48], "little") % modulus for i in range(n)]


def multiples_of_generator(group: Group, logs: list[int]) -> Words:
    # the CPU backend is tested against independent libraries, which the machine with the GPU need not have
    return cpu.fixed_base(group, cpu.generator(group), group.scalar.encode_canonical(logs))


@functools.cache
def known_multiples(group: Group, n: int) -> tuple[list[int], Words]:
    """n logarithms and those multiples of G."""
    logs = random_ints(group.scalar.modulus, n, 0)
    return logs, multiples_of_generator(group, logs)


def curve_of(group: Group) -> Curve:
    return TOY if group.curve_name == "toy" else Curve.named(group.curve_name)


def windows_of(group: Group, width: int, most: int = 1) -> Windows:
    return Windows(group.scalar.modulus.bit_length(), width, most)


def upload(vec: DeviceVec, rows: Words, stream: Stream) -> DeviceVec:
    pinned = PinnedVec.from_array(vec.elem, rows)
    vec.upload(pinned, stream)
    pinned.release()
    return vec


class Sums:
    """Sums over the same bases on one device."""

    def __init__(
        self,
        group: Group,
        rows: Words,
        windows: Windows,
        device: Device,
        *,
        chunks: Sequence[int] | None = None,
        blocks: int | None = 2,
    ) -> None:
        self.group, curve = group, curve_of(group)
        self.sorter = DigitSorter(curve, windows, len(rows), device, chunks=chunks)
        self.msm = DeviceMsm(curve, group, windows, device, blocks=blocks)
        self.table = upload(DeviceVec(group, windows.multiples * len(rows), device), rows, self.msm.stream)
        DeviceTables(group, device).extend(self.table, windows.spacing, windows.multiples, self.msm.stream)

    def of(self, scalars: Words, *, canonical: bool = True) -> Words:
        pinned = PinnedVec.from_array(self.group.scalar, scalars)
        out = self.msm.start(self.table, self.sorter.sort(pinned, canonical=canonical)).finish()
        pinned.release()
        return out


def check(sums: Sums, logs: list[int], scalars: list[int]) -> None:
    group = sums.group
    r = group.scalar.modulus
    expected = multiples_of_generator(group, [sum(k * s for k, s in zip(logs, scalars, strict=False)) % r])
    assert np.array_equal(sums.of(group.scalar.encode_canonical(scalars)), expected)


SIZES = [*range(1, 5), 31, 32, 33, 127, 237, 255, 256, 257, 511, 512, 513]
EXTREMES = [TOY.g1] if SIMULATED else [BN254.g1, TOY.g1]  # groups that all sizes are tried in


@every_group
def test_a_sum_on_the_device_is_the_sum(group: Group, device: Device) -> None:
    logs, rows = known_multiples(group, LARGEST)
    for n in SIZES if group in EXTREMES else [1, 130]:
        sums = Sums(group, rows[:n], windows_of(group, 6), device)
        check(sums, logs[:n], random_ints(group.scalar.modulus, n, 1))


@every_group
def test_no_scalars_sum_to_infinity(group: Group, device: Device) -> None:
    _, rows = known_multiples(group, 5)
    sums = Sums(group, rows, windows_of(group, 4), device)
    assert not sums.of(group.scalar.encode_canonical([])).any()
    assert not sums.of(group.scalar.encode_canonical([0] * 5)).any()
    assert not Sums(group, rows[:0], windows_of(group, 4), device).of(group.scalar.encode_canonical([])).any()


@every_group
@pytest.mark.parametrize("multiples", [2, 5, 1000])
def test_multiples_of_the_bases_change_nothing(group: Group, multiples: int, device: Device) -> None:
    logs, rows = known_multiples(group, LARGEST)
    n = 40
    sums = Sums(group, rows[:n], windows_of(group, 7 if group.curve_name != "toy" else 2, multiples), device)
    check(sums, logs[:n], random_ints(group.scalar.modulus, n, 3))
    check(sums, logs[:n], random_ints(group.scalar.modulus, n - 7, 4))  # fewer scalars than bases


@pytest.mark.parametrize("group", EXTREMES, ids=by_name)
@pytest.mark.parametrize("width", range(2, 14))
def test_windows_of_any_width(group: Group, width: int, device: Device) -> None:
    logs, rows = known_multiples(group, LARGEST)
    check(Sums(group, rows[:40], windows_of(group, width), device), logs[:40], edge_scalars(group, width, 40))


def edge_scalars(group: Group, width: int, n: int) -> list[int]:
    """Digits at their ends, carries through all windows, the top of the range."""
    r = group.scalar.modulus
    half, ones = 1 << (width - 1), sum(1 << i for i in range(0, r.bit_length() - 1, width))
    picked = [0, 1, r - 1, r // 2, r // 2 + 1, r // 2 - 1, half, half - 1, half + 1, r - half, r - half - 1]
    picked += [
        half * ones % r,
        (half - 1) * ones % r,
        (half + 1) * ones % r,
        (r - half * ones) % r,
        (1 << r.bit_length() - 1) % r,
    ]
    picked += [pow(2, k, r) for k in range(r.bit_length())]
    return [picked[i % len(picked)] % r for i in range(n)]


@every_group
@pytest.mark.parametrize("blocks", [1, 3])
def test_scalars_of_every_kind(group: Group, blocks: int, device: Device) -> None:
    """All in one bucket, in few, in many: runs through one walker, through blocks of walkers, through all."""
    r, n, width = group.scalar.modulus, 500 if group in EXTREMES else 60, 6
    logs, rows = known_multiples(group, LARGEST)
    sums = Sums(
        group,
        rows[:n],
        windows_of(group, width, 100 if blocks == 1 and n == 60 else 1),
        device,
        blocks=blocks,
    )
    draw = random_ints(r, n, 5)
    kinds = {
        "one": [1] * n,
        "minus one": [r - 1] * n,
        "equal": [draw[0]] * n,
        "powers of two": [pow(2, i, r) for i in range(n)],
        "mostly bits": [k if i % 10 == 0 else i & 1 for i, k in enumerate(draw)],
        "edges": edge_scalars(group, width, n),
        "one in the middle": [draw[1] if i == n // 2 else 0 for i in range(n)],
    }
    for scalars in kinds.values():
        check(sums, logs[:n], scalars)


@pytest.mark.parametrize("group", [*EXTREMES, TOY.g2], ids=by_name)
def test_bases_of_every_kind(group: Group, device: Device) -> None:
    """Infinity, equal and opposite points, in one bucket and apart."""
    n, r = 96, group.scalar.modulus
    logs, rows = known_multiples(group, LARGEST)
    draw = random_ints(r, n, 6)
    minus = cpu.msm(group, rows[:1], group.scalar.encode_canonical([r - 1]))

    def run(kept: list[int], bases: Words, *scalars: list[int]) -> None:
        sums = Sums(group, bases, windows_of(group, 5), device, blocks=1)
        for k in scalars:
            check(sums, kept, k)

    for gone in ([0], [n // 2], [n - 1], [0, 1, n // 2, n - 1], list(range(n))):
        bases, kept = rows[:n].copy(), list(logs[:n])
        for i in gone:
            bases[i], kept[i] = 0, 0
        run(kept, bases, draw, [1] * n)
    run([logs[0]] * n, np.repeat(rows[:1], n, axis=0), draw, [1] * n, [3] * n)
    opposite = np.concatenate([rows[:1], minus] * (n // 2))
    run([logs[0], -logs[0]] * (n // 2), opposite, draw, [1] * n, [1, r - 1] * (n // 2))
    run(
        [logs[0], -logs[0]] * (n // 2), opposite, [1] * (n - 1), [k for k in draw[: n // 2] for _ in range(2)]
    )


@pytest.mark.parametrize("group", [*EXTREMES, TOY.g2], ids=by_name)
@pytest.mark.parametrize("chunks", [[600], [256, 344], [1, 2, 597], [256, 256, 88]])
def test_chunks_change_nothing(group: Group, chunks: list[int], device: Device) -> None:
    logs, rows = known_multiples(group, 600)
    sums = Sums(group, rows[:600], windows_of(group, 4), device, chunks=chunks)
    for n in (600, 300, 1):
        check(sums, logs, random_ints(group.scalar.modulus, n, 7))


@pytest.mark.parametrize("group", [BN254.g1, BLS12_381.g1, TOY.g1], ids=by_name)
def test_scalars_in_montgomery_form_and_on_the_device(group: Group, device: Device) -> None:
    fr, n = group.scalar, 100
    _, rows = known_multiples(group, LARGEST)
    scalars = random_ints(fr.modulus, n, 8)
    sums = Sums(group, rows[:n], windows_of(group, 5), device)
    want = sums.of(fr.encode_canonical(scalars))
    assert np.array_equal(sums.of(fr.encode(scalars), canonical=False), want)
    there = upload(DeviceVec(fr, n, device), fr.encode_canonical(scalars), sums.sorter.stream)
    for _ in range(3):
        assert np.array_equal(sums.msm.start(sums.table, sums.sorter.sort(there)).finish(), want)


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=by_name)
def test_one_sort_serves_both_groups(curve: Curve, device: Device) -> None:
    n, fr = 70, curve.fr
    scalars = random_ints(fr.modulus, n, 9)
    kinds = {
        g: Sums(g, known_multiples(g, LARGEST)[1][:n], windows_of(g, 6), device, chunks=[32, 38])
        for g in (curve.g1, curve.g2)
    }
    one = kinds[curve.g1]
    digits = one.sorter.sort(PinnedVec.from_array(fr, fr.encode_canonical(scalars)))
    pending = {g: s.msm.start(s.table, digits) for g, s in kinds.items()}
    for g, p in pending.items():
        logs = known_multiples(g, LARGEST)[0]
        total = sum(k * s for k, s in zip(logs, scalars, strict=False)) % fr.modulus
        assert np.array_equal(p.finish(), multiples_of_generator(g, [total]))


def test_a_scalar_that_is_not_reduced_is_named(device: Device) -> None:
    group, n = TOY.g1, 300
    _, rows = known_multiples(group, LARGEST)
    sums = Sums(group, rows[:n], windows_of(group, 5), device, chunks=[256, 44])
    scalars = group.scalar.encode_canonical([1] * n)
    for bad in ([299], [270, 280], [3, 299], [0]):
        wrong = scalars.copy()
        wrong[bad] = 0xFFFFFFFFFFFFFFFF
        with pytest.raises(FormatError, match=f"scalar {bad[0]} is not below the order") as caught:
            sums.of(wrong)
        assert caught.value.index == bad[0]
    wrong = scalars.copy()
    wrong[7] = np.frombuffer(group.scalar.modulus.to_bytes(32, "little"), dtype=np.uint64)
    with pytest.raises(FormatError, match="scalar 7 "):
        sums.of(wrong)
    assert sums.of(scalars).any()


@pytest.mark.parametrize("width", range(2, 27))
def test_windows_cover_the_scalar_and_fit_their_sets(width: int) -> None:
    for bits in (7, 254, 255):
        for most in (1, 2, 3, 7, 1000):
            w = Windows(bits, width, most)
            assert w.windows * width >= bits > (w.windows - 1) * width
            assert w.sets * w.multiples >= w.windows > w.sets * (w.multiples - 1)
            assert w.multiples <= most
            covered = [range(first, first + n) for first, n in w.passes]
            assert [b for part in covered for b in part] == list(range(max(1, (w.buckets - 1).bit_length())))
            assert all(1 <= len(part) <= 8 for part in covered)


def test_windows_that_cannot_be_are_refused() -> None:
    for width, most in ((1, 1), (27, 1), (8, 0)):
        with pytest.raises(ValueError, match="2 to 26 bits"):
            Windows(254, width, most)


@pytest.mark.parametrize("group", REAL_GROUPS, ids=by_name)
def test_larger_sums_equal_the_cpus(group: Group, device: Device) -> None:
    sizes = [300] if SIMULATED else [1023, 1 << 13, (1 << 15) + 1, 65535, 65536, 65537]
    if not SIMULATED and group.number == 1:
        sizes += [(1 << 18) - 1, (1 << 18) + 1]
    most = sizes[-1]
    scalars = group.scalar.encode_canonical(random_ints(group.scalar.modulus, most, 11))
    _, rows = known_multiples(group, most)
    for n in sizes:
        sums = Sums(group, rows[:n], windows_of(group, 6 if SIMULATED else 12), device, blocks=None)
        assert np.array_equal(sums.of(scalars[:n]), cpu.msm(group, rows[:n], scalars[:n]))


def test_a_sum_repeated_has_the_same_bytes(device: Device) -> None:
    group, n, times = (TOY.g1, 300, 4) if SIMULATED else (BLS12_381.g1, 1 << 13, 200)
    _, rows = known_multiples(group, n)
    sums = Sums(
        group,
        rows,
        windows_of(group, 4 if SIMULATED else 11),
        device,
        chunks=[n // 2, n - n // 2],
        blocks=None,
    )
    scalars = group.scalar.encode_canonical(random_ints(group.scalar.modulus, n, 12))
    first = sums.of(scalars)
    assert all(np.array_equal(sums.of(scalars), first) for _ in range(times))


@pytest.mark.parametrize("bits", [254, 255])
def test_best_windows_are_the_least_work_and_grow_with_the_sum(bits: int) -> None:
    widths = [best_windows(bits, 1 << k, 1000).width for k in range(4, 28)]
    assert widths == sorted(widths)
    for most in (1, 2, 5, 15, 1000):
        w = best_windows(bits, 1 << 20, most)
        assert w.multiples <= most
        assert all(w.work(1 << 20) <= Windows(bits, c, most).work(1 << 20) for c in range(4, 27))
    assert best_windows(bits, 1 << 27, 1000).multiples << 27 <= 1 << 31  # indices of points have 31 bits


def test_more_bases_or_digits_than_indices_are_refused(device: Device) -> None:
    with pytest.raises(ValueError, match=r"32 multiples of 134217728 bases are more than 2\*\*31"):
        DigitSorter(BN254, Windows(254, 8, 1000), 1 << 27, device)

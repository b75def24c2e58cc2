# SPDX-License-Identifier: Apache-2.0
"""What kernels use of CUDA C++ means the same on a GPU and on the simulator: each piece against Python."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from device_probe import download, load, upload

from pinzk._core.device import Device, DeviceVec, Stream, launch

U32, U64 = np.uint32, np.uint64


def numbers(dtype: type, n: int) -> np.ndarray:
    out = np.random.default_rng(n).integers(0, np.iinfo(dtype).max, size=n, dtype=dtype, endpoint=True)
    out[:6] = [0, 1, np.iinfo(dtype).max, 1 << 31, (1 << 31) - 1, 1 << (np.iinfo(dtype).bits - 1)]
    return out


def run(
    name: str, device: Device, out: np.ndarray, *args: object, grid: int = 1, block: int = 64, shared: int = 0
) -> np.ndarray:
    """Launch a kernel of ``primitives.cu`` on copies of the arrays; what became of `out`."""
    stream = Stream(device)
    given = [upload(a, device, stream) if isinstance(a, np.ndarray) else a for a in (out, *args)]
    launch(load("primitives", device).function(name), grid, block, given, shared=shared, stream=stream)
    made = given[0]
    assert isinstance(made, DeviceVec)
    return download(made, out.dtype.type, stream)


@pytest.mark.parametrize("width", [4, 16, 32])
@pytest.mark.parametrize("dtype", [U32, U64])
def test_shuffles(dtype: type, width: int, device: Device) -> None:
    n = 128
    x, lane = numbers(dtype, n), np.arange(n)
    group, at = lane // width * width, lane % width
    flipped = np.where((lane ^ 6) < group + width, lane ^ 6, lane)  # later groups cannot be read
    expected = [
        x[group + 5 % width],
        x[np.where(at < 3, lane, lane - 3)],
        x[np.where(at + 3 < width, lane + 3, lane)],
        x[flipped],
        x[group + (x % dtype(width)).astype(int)],
    ]
    name = f"shuffles_{dtype.__name__.replace('uint', 'u')}"
    got = run(name, device, np.zeros(5 * n, dtype), x, width, n, grid=2)
    assert np.array_equal(got.reshape(5, n), expected)


def test_votes_of_halves_of_a_warp(device: Device) -> None:
    n = 96
    x = numbers(U32, n)
    x[64:76] |= 1  # all of the first twelve lanes of a warp
    x[76:] &= ~U32(1)
    expected = np.zeros((4, n), U32)
    for first in range(0, n, 32):
        for lanes, rounds in ((range(12), 3), (range(12, 32), 1)):
            votes = [sum(int(x[first + i] >> j & 1) << i for i in lanes) for j in range(rounds)]
            for i in lanes:
                expected[0, first + i] = np.bitwise_xor.reduce(votes)
                expected[1, first + i] = votes[0] != 0
                expected[2, first + i] = votes[0] == sum(1 << k for k in lanes)
        expected[3, first : first + 32] = sum(int(x[first + i] & 1) << i for i in range(32))
    assert np.array_equal(run("votes", device, np.zeros(4 * n, U32), x, n, block=96).reshape(4, n), expected)


def test_shared_memory_static_and_dynamic(device: Device) -> None:
    blocks, block = 3, 224
    x = numbers(U64, blocks * block).reshape(blocks, block)
    turned = x[:, ::-1]
    expected = (turned[:, ::-1] + turned[:, ::-1].astype(U32))[:, ::-1]
    got = run("block_reverse", device, np.zeros(x.size, U64), x, grid=blocks, block=block, shared=8 * block)
    assert np.array_equal(got.reshape(blocks, block), expected)


def test_a_sum_over_the_block(device: Device) -> None:
    x = numbers(U64, 5 * 256)
    got = run("block_sum", device, np.zeros(5, U64), x, grid=5, block=256)
    assert np.array_equal(got, x.reshape(5, 256).sum(axis=1, dtype=U64))


@pytest.mark.parametrize("dtype", [U32, U64])
def test_atomic_operations(dtype: type, device: Device) -> None:
    x, largest = numbers(dtype, 512), np.iinfo(dtype).max
    start: np.ndarray = np.array([0, 0, largest, 0, 0, 0, 0, 0], dtype)
    got = run(f"atomics_{dtype.__name__.replace('uint', 'u')}", device, start, x, grid=4, block=128)
    total = x.sum(dtype=dtype)
    assert list(got[:5]) == [total, x.max(), x.min(), np.bitwise_or.reduce(x), x.max()]
    assert got[5] in x and np.sum(got[5:7], dtype=dtype) == total


def test_bits(device: Device) -> None:
    x = np.concatenate([numbers(U64, 100), U64(1) << np.arange(64, dtype=U64)])
    n = len(x)
    rows = []
    for value in map(int, x):
        low = value & 0xFFFFFFFF
        clz = [32 - low.bit_length(), 64 - value.bit_length()]
        first = [(v & -v).bit_length() for v in (low, value)]
        reversed_ = [int(f"{low:032b}"[::-1], 2), int(f"{value:064b}"[::-1], 2)]
        rows.append([*clz, low.bit_count(), value.bit_count(), *first, *reversed_, value])
    got = run("bits", device, np.zeros(9 * n, U64), x, n, grid=3)
    assert np.array_equal(got.reshape(9, n).T, np.array(rows, U64))


def test_places_in_three_dimensions(device: Device) -> None:
    stream, grid, block = Stream(device), (3, 2, 4), (5, 6, 2)
    out = upload(np.zeros(24 * 60, U32), device, stream)
    launch(load("primitives", device).function("places"), grid, block, (out,), stream=stream)
    expected = np.arange(24)[:, None] << 16 | np.arange(60)
    assert np.array_equal(download(out, U32, stream), expected.ravel())


def test_parameters_of_every_width(device: Device) -> None:
    function = load("primitives", device).function("parameters")
    assert function.widths == (8, 16, 1, 4, 8)
    point = struct.pack("<IBxxxQ", 7, 200, 1 << 63)
    got = run("parameters", device, np.zeros(6, U64), point, 255, -2, (1 << 64) - 1, block=1)
    assert got.tolist() == [7, 200, 1 << 63, 255, (1 << 64) - 2, (1 << 64) - 1]

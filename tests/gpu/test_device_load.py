# SPDX-License-Identifier: Apache-2.0
"""Arrays to a GPU through pinned chunks: every element, any length, memory that comes home, errors of the filler."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from pinzk import BLS12_381
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.stages import device_load

G1 = BLS12_381.g1


def back(v: DeviceVec, stream: Stream) -> np.ndarray:
    pinned = PinnedVec(v.elem, len(v))
    v.download(pinned, stream)
    stream.synchronize()
    return np.array(pinned.borrow().numpy())


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100, 1000])
def test_every_element_arrives(device: Device, monkeypatch: pytest.MonkeyPatch, n: int, threads: int) -> None:
    monkeypatch.setattr(device_load, "CHUNK_BYTES", 8 * 96)
    array = np.random.default_rng(n).integers(0, 1 << 63, (n, G1.limbs), dtype=np.uint64)
    pool = PinnedPool(MemoryBudget(64 << 20))
    stream = Stream(device)
    v = DeviceVec(G1, n, device)
    device_load.load(v, n, device_load.copy(array), stream, pool=pool, threads=threads)
    np.testing.assert_array_equal(back(v, stream), array)
    gc.collect()
    pool.settle()
    assert pool.stats().out == 0


@pytest.mark.parametrize("n", [0, 1, 8, 1001])
def test_bytes_arrive(device: Device, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(device_load, "CHUNK_BYTES", 8)
    array, stream, v = np.arange(n).astype(np.uint8), Stream(device), DeviceVec("bytes", n, device)
    device_load.load(v, n, device_load.copy(array), stream)
    np.testing.assert_array_equal(back(v, stream), array)


def test_chunks_of_full_size(device: Device) -> None:
    n = 3 * device_load.CHUNK_BYTES // 96 + 5
    array = np.arange(n * G1.limbs, dtype=np.uint64).reshape(n, G1.limbs)
    stream = Stream(device)
    v = DeviceVec(G1, n, device)
    device_load.load(v, n, device_load.copy(array), stream)
    np.testing.assert_array_equal(back(v, stream), array)


def test_what_the_filler_raises_comes_out_and_nothing_stays_borrowed(device: Device) -> None:
    pool = PinnedPool(MemoryBudget(256 << 20))

    def fill(first: int, rows: np.ndarray) -> None:
        raise OSError("the disk is gone")

    v = DeviceVec(G1, 10, device)
    with pytest.raises(OSError, match="the disk is gone"):
        device_load.load(v, 10, fill, Stream(device), pool=pool)
    gc.collect()
    pool.settle()
    assert pool.stats().out == 0

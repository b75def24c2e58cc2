# SPDX-License-Identifier: Apache-2.0
"""Kernels of the tests' own: files in ``tests/simt``, compiled like those of pinzk."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import simulator

from pinzk import kernels
from pinzk._core.device import Device, DeviceVec, Module, Stream
from pinzk._core.memory import PinnedVec


@functools.cache
def load(name: str, device: Device) -> Module:
    """The kernels of ``tests/simt/<name>.cu``, behind the headers of pinzk with the toy curve."""
    with tempfile.TemporaryDirectory() as folder:
        for file in [*kernels.Builder().sources.iterdir(), simulator.HERE / f"{name}.cu"]:
            if file.is_file():
                (Path(folder) / file.name).write_text(file.read_text())
        builder = simulator.Builder if simulator.SIMULATED else kernels.Builder
        return Module(device, builder(Path(folder)).build(kernels.Unit(name, "toy"), device.sm).image)


def upload(array: np.ndarray, device: Device, stream: Stream) -> DeviceVec:
    """Bytes of an array."""
    raw = np.frombuffer(array.tobytes(), dtype=np.uint8)
    pinned = PinnedVec.from_array("bytes", raw)
    v = DeviceVec("bytes", len(raw), device)
    v.upload(pinned, stream)
    pinned.release()
    return v


def download(v: DeviceVec, dtype: type, stream: Stream) -> np.ndarray:
    """What a vector holds."""
    pinned = PinnedVec("bytes", len(v))
    pinned.resize(len(v))
    v.download(pinned, stream)
    stream.synchronize()
    out: np.ndarray = np.array(pinned.borrow().numpy()).view(dtype)
    pinned.release()
    return out

# SPDX-License-Identifier: Apache-2.0
"""One base by many scalars, on the CPU or on a GPU."""

from __future__ import annotations

import numpy as np

from .._core import cpu
from .._core.device import Device, DeviceVec, Stream
from .._core.memory import PinnedVec
from ..backend import Backend
from ..curves import Group, Words
from .device_load import copy, load
from .device_tables import FixedBase

_PIECE = 1 << 21  # scalars on the device at a time: 400 MB of points in G2 of BLS12-381


def fixed_base(group: Group, base: Words, scalars: Words, *, backend: Backend = "cpu") -> Words:
    """Products of one point by every scalar.

    Parameters
    ----------
    group : Group
    base : ndarray of uint64, shape (1, group.limbs)
    scalars : ndarray of uint64, shape (n, 4)
        Canonical, below the order.
    backend : "cpu" or Device
        As `backend.select` gives it.

    Returns
    -------
    ndarray of uint64, shape (n, group.limbs)
        Affine, infinity all zeros.
    """
    if not isinstance(backend, Device):
        return cpu.fixed_base(group, base, scalars)
    stream, n = Stream(backend), len(scalars)
    out = np.empty((n, group.limbs), np.uint64)
    window = min(13, max(4, n.bit_length() - 2))  # a larger table than products pays for is not made
    table = FixedBase(group, base, backend, stream, window=window)
    for first in range(0, n, _PIECE):
        _piece(table, scalars[first : first + _PIECE], out[first : first + _PIECE], stream)
    table.close()
    return out


def _piece(table: FixedBase, scalars: Words, out: Words, stream: Stream) -> None:
    n = len(scalars)
    with (
        DeviceVec(table.group.scalar, n, table.device) as k,
        DeviceVec(table.group, n, table.device) as points,
        PinnedVec(table.group, n) as there,
    ):
        load(k, n, copy(scalars), stream)
        points.commit(n)
        table.multiply(points, k, stream)
        points.download(there, stream)
        stream.synchronize()
        out[:] = there.borrow().numpy()

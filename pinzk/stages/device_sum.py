# SPDX-License-Identifier: Apache-2.0
"""One multi-scalar sum on a GPU, from arrays of every kind: what `msm` does there. Provers keep sorter and sums instead."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from .._core.device import Device, DeviceVec, Stream, view
from .._core.memory import PinnedVec
from ..curves import Curve, Field, Group, Words
from .arrays import check_elem, expected_rows
from .device_load import copy, load
from .device_msm import DeviceMsm
from .device_sort import DigitSorter, best_windows


def device_sum(
    group: Group, bases: Any, scalars: Any, device: Device, *, canonical: bool, stream: Any = None
) -> Words:
    """See `msm`; returns when the point is there."""
    own = Stream(device)
    if stream is not None:
        theirs = stream if isinstance(stream, Stream) else Stream(device, stream)
        if theirs.device != device:
            raise ValueError(
                f"the stream belongs to device {theirs.device.index}, not to device {device.index}"
            )
        own.wait(theirs.record())
    with ExitStack() as ours:
        points = _there(ours, "bases", group, bases, own)
        k = _there(ours, "scalars", group.scalar, scalars, own)
        n = len(points)
        if len(k) != n:
            raise ValueError(f"lengths differ: {n} and {len(k)}")
        if n == 0:
            return np.zeros((1, group.limbs), np.uint64)
        curve = Curve.named(group.curve_name)
        windows = best_windows(group.scalar.modulus.bit_length(), n)
        sorter = DigitSorter(curve, windows, n, device, stream=own)
        ours.callback(sorter.close)
        sums = DeviceMsm(curve, group, windows, device, stream=own)
        ours.callback(sums.close)
        return sums.start(points, sorter.sort(k, canonical=canonical)).finish()


def _there(ours: ExitStack, name: str, elem: Field | Group, x: Any, stream: Stream) -> DeviceVec:
    """The rows of an argument on the device, ready for work behind it on the stream; `ours` gives back what was made."""
    device = stream.device
    if isinstance(x, PinnedVec | DeviceVec):
        check_elem(name, x, elem)
    if isinstance(x, DeviceVec):
        if x.device != device:
            raise ValueError(f"{name} are on device {x.device.index}, not on device {device.index}")
        for event in x.events():
            stream.wait(event)
        return x
    if isinstance(x, PinnedVec):
        out = ours.enter_context(DeviceVec(elem, len(x), device))
        out.upload(x, stream)
    elif isinstance(x, np.ndarray):
        if x.dtype != np.uint64 or x.ndim != 2 or x.shape[1] != elem.limbs:
            raise expected_rows(name, elem.limbs, x)
        out = ours.enter_context(DeviceVec(elem, len(x), device))
        load(out, len(x), copy(x), stream)
    elif hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__"):
        array, shape = view(elem, x, device, stream)
        out = ours.enter_context(array)
        if len(shape) != 2:
            raise expected_rows(name, elem.limbs, f"one of shape {shape}")
    else:
        raise expected_rows(name, elem.limbs, x)
    return out

# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar multiplication: sum scalars[i] * bases[i]."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from .._core import cpu
from .._core.device import Device, DeviceVec
from .._core.memory import PinnedVec
from ..curves import Field, Group, Words
from ..errors import FormatError
from .arrays import check_elem, expected_rows


def msm(
    group: Group,
    bases: Any,
    scalars: Any,
    *,
    canonical: bool = False,
    device: str | Device = "auto",
    stream: Any = None,
    threads: int | None = None,
) -> Words:
    """Sum of scalars[i] * bases[i].

    Additions are complete: infinity, equal and opposite points may come in any mixture. Not constant time.

    Parameters
    ----------
    group : Group
    bases : ndarray of uint64, shape (n, group.limbs); PinnedVec; or DeviceVec or device array
        Affine points, Montgomery coordinates; trusted to lie on the curve. The last two on the GPU that does the work.
    scalars : ndarray of uint64, shape (n, 4); or as above
        Below the group's order; Montgomery form, or canonical where `canonical` says so.
    canonical : bool, default False
    device : str or Device, default "auto"
        See `pinzk.backend.select`.
    stream : Stream, int or object with ``__cuda_stream__``, optional
        Of the GPU: the work comes behind what is on it. The call returns when the point is there.
    threads : int, optional
        On the CPU.

    Returns
    -------
    ndarray of uint64, shape (1, group.limbs)
        One affine point; infinity (all zeros) where n = 0.

    Raises
    ------
    TypeError, ValueError
        Shapes or types do not fit, or an array is on another device.
    BackendUnavailable
        The device that was asked for cannot be used.
    BudgetExceeded
        It does not fit on the device.
    FormatError
        A scalar is not below the order; the message has its index.

    Examples
    --------
    >>> from pinzk import BLS12_381, msm
    >>> g1, fr = BLS12_381.g1, BLS12_381.fr
    >>> bases = g1.encode([g1.generator()] * 3)
    >>> six = msm(g1, bases, fr.encode([1, 2, 3]))
    >>> bool((six == msm(g1, bases[:1], fr.encode([6]))).all())
    True
    """
    where = backend.select(device)
    if isinstance(where, Device):
        from .device_sum import device_sum  # a process without a GPU has no use for it

        return device_sum(group, bases, scalars, where, canonical=canonical, stream=stream)
    if stream is not None:
        raise ValueError("stream: the CPU backend has no streams")
    p = _rows("bases", bases, group)
    k = _rows("scalars", scalars, group.scalar)
    bad = cpu.first_unreduced(group.scalar, k, threads=threads)
    if bad is not None:
        raise FormatError(f"scalar {bad} is not below the order of {group.name}", index=bad)
    if not canonical:
        k = cpu.from_montgomery(group.scalar, k, threads=threads)
    return cpu.msm(group, p, k, threads=threads)


def _rows(name: str, x: Any, elem: Field | Group) -> Words:
    if isinstance(x, PinnedVec):
        check_elem(name, x, elem)
        return x.borrow().numpy()
    if isinstance(x, DeviceVec):
        raise ValueError(f"{name} are on a GPU: say device='cuda'")
    if not isinstance(x, np.ndarray) or x.dtype != np.uint64 or x.ndim != 2 or x.shape[1] != elem.limbs:
        raise expected_rows(name, elem.limbs, x)
    return np.ascontiguousarray(x)

# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar multiplication: sum scalars[i] * bases[i]."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from .._core import cpu
from .._core.device import Device
from ..curves import Group, Words
from ..errors import FormatError


def msm(
    group: Group,
    bases: Words,
    scalars: Words,
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
    bases : ndarray of uint64, shape (n, group.limbs)
        Affine points, Montgomery coordinates; trusted to lie on the curve.
    scalars : ndarray of uint64, shape (n, 4)
        Below the group's order; Montgomery form, or canonical where `canonical` says so.
    canonical : bool, default False
    device : str or Device, default "auto"
    stream : optional
        A stream of the device; there is none on the CPU.
    threads : int, optional

    Returns
    -------
    ndarray of uint64, shape (1, group.limbs)
        One affine point; infinity (all zeros) where n = 0.

    Raises
    ------
    ValueError
        Shapes or types do not fit.
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
    backend.select(device, cpu_only="multi-scalar products")
    if stream is not None:
        raise ValueError("stream: the CPU backend has no streams")
    p = _rows("bases", bases, group.limbs)
    k = _rows("scalars", scalars, group.scalar.limbs)
    bad = cpu.first_unreduced(group.scalar, k, threads=threads)
    if bad is not None:
        raise FormatError(f"scalar {bad} is not below the order of {group.name}", index=bad)
    if not canonical:
        k = cpu.from_montgomery(group.scalar, k, threads=threads)
    return cpu.msm(group, p, k, threads=threads)


def _rows(name: str, array: Any, columns: int) -> Words:
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != np.uint64
        or array.ndim != 2
        or array.shape[1] != columns
    ):
        got = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be an array uint64[n, {columns}], not {got}")
    return np.ascontiguousarray(array)

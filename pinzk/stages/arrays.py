# SPDX-License-Identifier: Apache-2.0
"""What a transform takes: arrays and vectors of scalars, one vector of n elements or several."""

from __future__ import annotations

import numpy as np

from .._core.device import DeviceVec
from .._core.memory import PinnedVec
from ..curves import Field


def expected(size: int, got: object) -> ValueError:
    """The error for an argument that is no array of such a domain."""
    if isinstance(got, np.ndarray):
        got = f"{got.dtype}{list(got.shape)}"
    elif not isinstance(got, str):
        got = type(got).__name__
    return ValueError(f"expected an array uint64[{size}, 4] or uint64[k, {size}, 4], not {got}")


def check_rows(v: np.ndarray, size: int) -> None:
    """Refuse an array that is not one or several vectors of `size` scalars."""
    if v.dtype != np.uint64 or v.ndim not in (2, 3) or v.shape[-2:] != (size, 4):
        raise expected(size, v)


def check_vector(v: PinnedVec | DeviceVec, field: Field, size: int) -> None:
    """Refuse a vector that is not one or several times `size` scalars of the field."""
    if v.elem != field:
        elem = v.elem if isinstance(v.elem, str) else v.elem.name
        raise TypeError(f"expected a vector of {field.name}, not of {elem}")
    if len(v) % size:
        raise ValueError(f"expected a vector of {size} elements or a multiple, not of {len(v)}")

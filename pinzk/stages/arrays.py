# SPDX-License-Identifier: Apache-2.0
"""What transforms and sums take: arrays and vectors, and what is said of those that do not fit."""

from __future__ import annotations

import numpy as np

from .._core.device import DeviceVec
from .._core.memory import PinnedVec
from ..curves import Field, Group


def expected(size: int, got: object) -> ValueError:
    """The error for an argument that is no array of such a domain."""
    return ValueError(f"expected an array uint64[{size}, 4] or uint64[k, {size}, 4], not {_told(got)}")


def expected_rows(name: str, columns: int, got: object) -> ValueError:
    """The error for an argument that is no array of rows."""
    return ValueError(f"{name} must be an array uint64[n, {columns}], not {_told(got)}")


def _told(got: object) -> str:
    if isinstance(got, np.ndarray):
        return f"{got.dtype}{list(got.shape)}"
    return got if isinstance(got, str) else type(got).__name__


def check_rows(v: np.ndarray, size: int) -> None:
    """Refuse an array that is not one or several vectors of `size` scalars."""
    if v.dtype != np.uint64 or v.ndim not in (2, 3) or v.shape[-2:] != (size, 4):
        raise expected(size, v)


def check_elem(name: str, v: PinnedVec | DeviceVec, elem: Field | Group) -> None:
    """Refuse a vector of other elements."""
    if v.elem != elem:
        found = v.elem if isinstance(v.elem, str) else v.elem.name
        raise TypeError(f"{name} must be of {elem.name}, not of {found}")


def check_vector(v: PinnedVec | DeviceVec, field: Field, size: int) -> None:
    """Refuse a vector that is not one or several times `size` scalars of the field."""
    check_elem("the vector", v, field)
    if len(v) % size:
        raise ValueError(f"expected a vector of {size} elements or a multiple, not of {len(v)}")

# SPDX-License-Identifier: Apache-2.0
"""Points that an object keeps: copied, checked, read-only."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .._core import cpu
from ..curves import Group, Words
from ..errors import FormatError

FAULTS = {
    "coordinate": "a coordinate is not below q",
    "curve": "not on the curve",
    "subgroup": "on the curve, but not in the subgroup of order r",
}


def owned_points(
    group: Group,
    rows: Words,
    field: str,
    *,
    count: int | None = None,
    check: Literal["range", "curve", "subgroup"],
    finite: bool = False,
    path: str | None = None,
) -> Words:
    """A read-only copy of affine rows.

    Parameters
    ----------
    group : Group
    rows : ndarray of uint64, shape (n, group.limbs)
    field : str
        What the points are called in JSON, for messages.
    count : int, optional
        n must be this, or else at least one.
    check : {"range", "curve", "subgroup"}
        As in `pinzk._core.cpu.first_bad_point`.
    finite : bool
        Refuse infinity.
    path : str, optional
        The document, for messages.

    Raises
    ------
    ValueError
        Wrong shape.
    FormatError
        A point fails the check; names its field and index.
    """
    array = np.array(rows, dtype=np.uint64, order="C", ndmin=2)
    if array.ndim != 2 or array.shape[1] != group.limbs or len(array) < 1 or count not in (None, len(array)):
        n = "n" if count is None else count
        raise ValueError(f"{field} must have shape ({n}, {group.limbs}), not {array.shape}")
    bad = cpu.first_bad_point(group, array, check)
    if bad is not None:
        raise _bad(field, bad[0], FAULTS[bad[1]], count, path)
    infinite = np.flatnonzero(~array.any(axis=1))
    if finite and len(infinite):
        raise _bad(field, int(infinite[0]), "the point at infinity", count, path)
    array.setflags(write=False)
    return array


def _bad(field: str, index: int, reason: str, count: int | None, path: str | None) -> FormatError:
    if count == 1:
        return FormatError(reason, path=path, section=field)
    return FormatError(f"point {index}: {reason}", path=path, section=field, index=index)

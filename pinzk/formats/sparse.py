# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices by rows, as constraints come: which wires each row uses, and with what coefficient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..curves import Curve, Words


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Compressed rows over a scalar field.

    Attributes
    ----------
    indptr : ndarray of uint64, shape (n_rows + 1,)
        Row i holds the entries ``indptr[i]`` up to ``indptr[i + 1]``.
    indices : ndarray of uint32, shape (nnz,)
        Wires.
    values : ndarray of uint64, shape (nnz, 4)
        Coefficients c as c * R**2 mod r, as a zkey stores them: one Montgomery product with a canonical witness value w
        gives the Montgomery form of c * w.
    """

    indptr: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    values: Words

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    def entries(self, first: int, last: int) -> tuple[NDArray[np.int64], int, int]:
        """The entries of rows [first, last): the row of each, and where they begin and end."""
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        lengths = np.diff(self.indptr[first : last + 1]).astype(np.int64)
        return np.repeat(np.arange(first, last), lengths), begin, end

    @staticmethod
    def from_entries(curve: Curve, rows: Iterable[Iterable[tuple[int, int]]]) -> SparseRows:
        """Rows of pairs (wire, coefficient); a coefficient may be any int."""
        given = [list(row) for row in rows]
        r = curve.fr.modulus
        return SparseRows(
            np.cumsum([0, *map(len, given)]).astype(np.uint64),
            np.array([wire for row in given for wire, _ in row], dtype=np.uint32),
            curve.fr.encode((c << 256) % r for row in given for _, c in row),
        )

    @staticmethod
    def room_for(indptr: NDArray[np.uint64]) -> SparseRows:
        """Uninitialised entries under finished offsets."""
        nnz = int(indptr[-1])
        return SparseRows(indptr, np.empty(nnz, dtype=np.uint32), np.empty((nnz, 4), dtype=np.uint64))


def row_pieces(offsets: NDArray[np.uint64], size: int) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges of about `size` entries; `offsets` counts the entries before each row."""
    first, n_rows = 0, len(offsets) - 1
    while first < n_rows:
        last = int(np.searchsorted(offsets, offsets[first] + np.uint64(size), side="right")) - 1
        last = min(max(last, first + 1), n_rows)
        yield first, last
        first = last

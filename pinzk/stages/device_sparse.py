# SPDX-License-Identifier: Apache-2.0
"""Sparse rows of a key on one GPU: A w, B w, C w from the witness alone (kernels in ``cuda/sparse.cu``). docs/kernels.md, 5.

Most coefficients are 1 or -1, and the others few: an entry of the first kind takes four bytes, of the second five or six.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import backend
from .._core import cpu
from .._core.device import Device, DeviceVec, Stream, launch
from ..curves import Curve, Field, Words
from .device_load import copy, load

_BLOCK = 256
_LONGEST = 24  # entries of a row for one thread; a warp takes longer ones
_PIECE = 1 << 20  # entries at a time, on the host


_TOO_MANY = "the GPU takes fewer than 2^31, evaluate such a matrix on the CPU"


class DeviceSparse:
    """The matrix of one query, on a device: uploaded once, multiplied with many witnesses.

    Parameters
    ----------
    curve : Curve
    indptr : ndarray of uint64, shape (n_rows + 1,)
        Row i holds the entries ``indptr[i]`` up to ``indptr[i + 1]``.
    indices : ndarray of uint32, shape (nnz,)
        Columns.
    values : ndarray of uint64, shape (nnz, 4)
        Coefficients c as c R**2, as in `formats.sparse.SparseRows`.
    device : Device
    stream : Stream
        For the uploads; the arrays are no longer needed when this returns.
    identity : int, default 0
        Rows behind the last that hold one entry, a 1 in column 0, 1, ..: the rows ``input_i * 0 = 0`` of a bellman key.

    Attributes
    ----------
    n_rows, nnz : int
        With the rows of `identity`.
    columns : int
        Elements that a witness has at least.

    Raises
    ------
    ValueError
        Arrays do not fit one another; there are 2**31 entries, rows or columns, or more.
    """

    def __init__(
        self,
        curve: Curve,
        indptr: NDArray[np.uint64],
        indices: NDArray[np.uint32],
        values: Words,
        device: Device,
        stream: Stream,
        *,
        identity: int = 0,
    ) -> None:
        self._fr: Field = curve.fr
        self.device = device
        _check(indptr, indices, values, identity)
        self._kernels = backend.load("sparse", curve.name, device)
        codes, dictionary = coefficient_codes(self._fr, values)
        if identity:
            more = np.arange(identity, dtype=np.uint32)
            indptr = np.concatenate([indptr, indptr[-1] + more + np.uint64(1)])
            indices, codes = (
                np.concatenate([indices, more]),
                np.concatenate([codes, np.zeros_like(more, codes.dtype)]),
            )
        self.n_rows, self.nnz = len(indptr) - 1, len(indices)
        self.columns = int(indices.max()) + 1 if self.nnz else 0
        if self.columns > 1 << 31:
            raise ValueError(f"{self.columns} columns: {_TOO_MANY}")
        long = np.diff(indptr) > _LONGEST
        unit = codes < 2
        signed = indices | codes.astype(np.uint32) << np.uint32(31)
        units = _List.of(unit, indptr, long, signed[unit])
        del signed
        other = codes[~unit] - codes.dtype.type(2)
        products = _List.of(~unit, indptr, long, indices[~unit], other)
        self._width, self._long = codes.dtype.itemsize, int(long.sum())
        shared = (*products.entries, dictionary[2:])

        def uploaded(*arrays: NDArray[Any]) -> list[DeviceVec]:
            return [_uploaded(array, device, stream) for array in arrays]

        self._entries = uploaded(*units.entries, *shared)
        self._offsets = uploaded(units.offsets, products.offsets)
        self._long_offsets = uploaded(
            units.long_offsets, products.long_offsets, np.flatnonzero(long).astype(np.uint32)
        )

    @property
    def nbytes(self) -> int:
        """Device memory held."""
        return sum(v.nbytes for v in self._arrays())

    def times(self, witness: DeviceVec) -> Callable[[DeviceVec, int, Stream], int]:
        """The product, as `DeviceQuotient` takes it: a function that enqueues it.

        Parameters
        ----------
        witness : DeviceVec
            Montgomery form (`to_montgomery`); complete for the stream of the call, and not released before.

        Returns
        -------
        function of (out, first, stream)
            Writes rows to ``out[first : first + n_rows]``, Montgomery form, and returns `n_rows`.

        Raises
        ------
        ValueError
            The witness is shorter than the matrix is wide, or of another field.
        """
        if witness.elem != self._fr:
            raise ValueError(f"the matrix is over {self._fr.name}, the witness holds other elements")
        if len(witness) < self.columns:
            raise ValueError(f"the matrix has {self.columns} columns, the witness {len(witness)} elements")

        def enqueue(out: DeviceVec, first: int, stream: Stream) -> int:
            if out.elem != self._fr or first + self.n_rows > out.capacity:
                raise ValueError(f"{self.n_rows} rows do not fit behind element {first} of {out!r}")
            units, columns, codes, dictionary = self._entries
            to, products = (out, first), (columns, codes, self._width, dictionary, witness)
            of_units, offsets = self._offsets
            self._launch(
                "sparse_rows", self.n_rows, (to, of_units, units, offsets, *products, self.n_rows), stream
            )
            of_units, offsets, long = self._long_offsets  # on top of zeros
            args = (to, of_units, units, offsets, *products, long, self._long)
            self._launch("sparse_long_rows", 32 * self._long, args, stream)
            return self.n_rows

        return enqueue

    def release(self) -> None:
        """Give the device memory back when the work that was enqueued is past it; once."""
        for v in self._arrays():
            v.release()

    def _arrays(self) -> list[DeviceVec]:
        return [*self._entries, *self._offsets, *self._long_offsets]

    def _launch(self, kernel: str, n: int, args: tuple[Any, ...], stream: Stream) -> None:
        if n:
            launch(self._kernels.function(kernel), -(-n // _BLOCK), _BLOCK, args, stream=stream)


@dataclass(frozen=True)
class _List:
    """Entries of one kind, those of long rows behind the others, and where each row's begin."""

    entries: list[NDArray[Any]]
    offsets: NDArray[np.uint32]  # of every row; a long one is empty there
    long_offsets: NDArray[np.uint32]

    @staticmethod
    def of(
        chosen: NDArray[np.bool_], indptr: NDArray[np.uint64], long: NDArray[np.bool_], *entries: NDArray[Any]
    ) -> _List:
        before = np.zeros(len(chosen) + 1, np.uint32)
        np.cumsum(chosen, out=before[1:])
        lengths = np.diff(before[indptr])
        short = np.where(long, 0, lengths)
        offsets, long_offsets = (
            np.concatenate([[0], np.cumsum(x)]) + begin
            for x, begin in ((short, 0), (lengths[long], int(short.sum())))
        )
        if long.any():
            behind = np.repeat(long, lengths)
            entries = tuple(np.concatenate([x[~behind], x[behind]]) for x in entries)
        return _List(list(entries), offsets.astype(np.uint32), long_offsets.astype(np.uint32))


def to_montgomery(witness: DeviceVec, stream: Stream) -> DeviceVec:
    """A new vector: canonical scalars in Montgomery form; the argument stays as the digits of an MSM want it."""
    fr, n = witness.elem, len(witness)
    out = DeviceVec(fr, n, witness.device)
    out.commit(n)
    if n:
        kernel = backend.load("vec", fr.curve_name, witness.device).function("vec_times")
        r_squared = fr.encode([(1 << 64 * fr.limbs) % fr.modulus]).tobytes()
        launch(kernel, -(-n // _BLOCK), _BLOCK, (out, witness, r_squared, n), stream=stream)
    return out


def coefficient_codes(fr: Field, values: Words) -> tuple[NDArray[Any], Words]:
    """Coefficients by number: 0 is 1, 1 is -1, the others by appearance.

    Parameters
    ----------
    fr : Field
    values : ndarray of uint64, shape (nnz, 4)
        c R**2.

    Returns
    -------
    codes : ndarray of uint8, uint16 or uint32, shape (nnz,)
        The narrowest that holds all.
    dictionary : ndarray of uint64, shape (k, 4)
        Montgomery form; ``dictionary[codes]`` are the coefficients.
    """
    r = fr.modulus
    known = _Known(fr.encode_canonical([(1 << 512) % r, -(1 << 512) % r]))
    codes = np.empty(len(values), np.uint32)
    for begin in range(0, len(values), _PIECE):
        known.find(values[begin : begin + _PIECE], codes[begin : begin + _PIECE])
    rows = known.rows
    narrow = np.uint8 if len(rows) <= 1 << 8 else np.uint16 if len(rows) <= 1 << 16 else np.uint32
    return codes.astype(narrow, copy=False), cpu.from_montgomery(fr, rows)


class _Known:
    """Distinct rows, found by a hash that sorts; equality decides, so colliding rows only cost room."""

    def __init__(self, rows: Words) -> None:
        self._pieces, self._count = [rows], len(rows)
        self._hashes, self._codes = _sorted(_hash(rows), np.arange(len(rows), dtype=np.uint32))

    @property
    def rows(self) -> Words:
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0]

    def find(self, values: Words, out: NDArray[np.uint32]) -> None:
        """Write each row's number; rows not seen before get the next ones."""
        hashes, rows = _hash(values), self.rows
        place = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        out[:] = self._codes[place]
        new = np.flatnonzero((rows[out] != values).any(axis=1))
        if not len(new):
            return
        _, which, number = np.unique(hashes[new], return_index=True, return_inverse=True)
        order = np.argsort(which)  # by appearance, so that neighbours of a row stay neighbours
        which, number = which[order], np.argsort(order)[number]
        same = (values[new[which[number]]] == values[new]).all(axis=1)
        out[new[same]] = self._count + number[same]
        self._add(values[new[which]], hashes[new[which]])
        other = new[~same]  # of equal hash: each gets a number of its own, and is not found again
        out[other] = np.arange(self._count, self._count + len(other))
        self._pieces.append(values[other])
        self._count += len(other)

    def _add(self, rows: Words, hashes: NDArray[np.uint64]) -> None:
        codes = np.arange(self._count, self._count + len(rows), dtype=np.uint32)
        self._hashes, self._codes = _sorted(
            np.concatenate([self._hashes, hashes]), np.concatenate([self._codes, codes])
        )
        self._pieces.append(rows)
        self._count += len(rows)


def _hash(rows: Words) -> NDArray[np.uint64]:
    out = rows[:, 0] * np.uint64(0x9E3779B97F4A7C15)
    for i, odd in enumerate((0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93), 1):
        out ^= out >> np.uint64(29)
        out += rows[:, i] * np.uint64(odd)
    return out


def _sorted(
    hashes: NDArray[np.uint64], codes: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    order = np.argsort(hashes, kind="stable")  # of equal hashes the first number is found
    return hashes[order], codes[order]


def _check(indptr: Any, indices: Any, values: Any, identity: int) -> None:
    for name, array, dtype, columns in (
        ("indptr", indptr, np.uint64, ()),
        ("indices", indices, np.uint32, ()),
        ("values", values, np.uint64, (4,)),
    ):
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != dtype
            or array.shape[1:] != columns
            or array.ndim == 0
        ):
            raise ValueError(f"{name} must be an array of {np.dtype(dtype)}, rows of {columns or 'one'}")
    nnz = len(indices)
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != nnz or len(values) != nnz:
        raise ValueError(
            f"indptr must run from 0 to the number of entries: {nnz} indices, {len(values)} values"
        )
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr must not decrease")
    if identity < 0:
        raise ValueError(f"identity is a number of rows, not {identity}")
    if max(nnz, len(indptr) - 1) + identity >= 1 << 31:
        raise ValueError(f"{nnz} entries in {len(indptr) - 1} rows: {_TOO_MANY}")


def _uploaded(array: NDArray[Any], device: Device, stream: Stream) -> DeviceVec:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    out = DeviceVec("bytes", len(raw), device)
    if len(raw):
        load(out, len(raw), copy(raw), stream)
    return out

# SPDX-License-Identifier: Apache-2.0
"""Scalars of a multi-scalar sum on one GPU: how they are cut into digits, and the digits in the order of their buckets.

Kernels: ``cuda/sort.cu``. One sort serves every sum over the same scalars, in G1 and in G2. docs/kernels.md, 7.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .. import backend
from .._core.device import Device, DeviceVec, Event, Stream, launch
from .._core.memory import PinnedVec
from ..curves import Curve
from ..errors import FormatError

_TILE_SCALARS, _TILE_WINDOWS, _TILE = 256, 16, 4096  # of a block: scalars, windows of each, entries
_THREADS = 256
_SORT = 0.02  # of an addition: a pass of the sort over an entry, as measured in G1 of BLS12-381
_BINS = 256

_FOLD = 4.4  # of an addition: two of sums, at the rate of the folds


@dataclass(frozen=True)
class Windows:
    """Signed windows of scalars, and which multiples of the bases there are.

    A scalar is cut into `windows` digits of `width` bits. With `multiples` of every base P at hand, 2**(spacing j) P for
    j < multiples, windows fall into `sets`, each with buckets of its own; with all multiples there is one set.

    Parameters
    ----------
    bits : int
        Of the group's order.
    width : int
        Bits of a digit, 2 to 26.
    most : int
        Multiples that there may be, at least 1: the bases themselves.
    """

    bits: int
    width: int
    most: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.width <= 26 or self.most < 1:
            raise ValueError(f"windows of {self.width} bits, {self.most} multiples: 2 to 26 bits, at least 1")

    @property
    def windows(self) -> int:  # noqa: D102
        return _ceil(self.bits, self.width)

    @property
    def sets(self) -> int:  # noqa: D102
        return _ceil(self.windows, self.most)

    @property
    def multiples(self) -> int:  # noqa: D102
        return _ceil(self.windows, self.sets)

    @property
    def spacing(self) -> int:
        """Doublings from one multiple to the next."""
        return self.width * self.sets

    @property
    def buckets(self) -> int:
        """Of all sets."""
        return self.sets << (self.width - 1)

    @property
    def passes(self) -> list[tuple[int, int]]:
        """Of the sort: the first bit of the key and the number of bits, as even as can be."""
        key_bits = max((self.buckets - 1).bit_length(), 1)
        count = _ceil(key_bits, 8)
        cuts = [key_bits * i // count for i in range(count + 1)]
        return [(a, b - a) for a, b in pairwise(cuts)]

    def sort_bytes(self, n: int, chunks: Sequence[int] | None = None) -> int:
        """Device memory that sorting n scalars takes, the uploaded scalars included."""
        parts = chunks_of(n) if chunks is None else chunks
        largest = max(parts, default=0)
        return 32 * n + 8 * self.windows * (n + largest) + 4 * _BINS * self._columns(largest) + 8 * len(parts)

    def work(self, n: int) -> float:
        """What a sum of n scalars costs, in additions of a point: one an entry, passes of the sort, folding of buckets."""
        return self.windows * n * (1 + _SORT * len(self.passes)) + _FOLD * self.buckets

    def _columns(self, n: int) -> int:
        # blocks of the largest pass
        blocks = _ceil(n, _TILE_SCALARS) * _ceil(self.windows, _TILE_WINDOWS)
        return max(blocks, _ceil(n * self.windows, _TILE), 1)


def best_windows(bits: int, n: int, most: int = 1) -> Windows:
    """The windows with which n scalars make the least work.

    Parameters
    ----------
    bits : int
        Of the group's order.
    n : int
    most : int
        Multiples of the bases that there may be: what memory has room for.
    """
    if n * most > 1 << 31:
        most = max(1, (1 << 31) // max(n, 1))

    return min((Windows(bits, width, most) for width in range(4, 27)), key=lambda w: w.work(n))


def chunks_of(n: int) -> list[int]:
    """Scalars of each chunk of n: the first is small, so that work begins early; the last is half."""
    if n < 1 << 17:
        return [n] if n else []
    parts = (1, 3) if n < 1 << 21 else (1, 3, 4)
    cuts = [n * sum(parts[:i]) // sum(parts) // _TILE_SCALARS * _TILE_SCALARS for i in range(len(parts))] + [
        n
    ]
    return [b - a for a, b in pairwise(cuts)]


@dataclass(frozen=True)
class Chunk:
    """Sorted digits of some scalars: entries, where their number stands, and when both are there."""

    entries: tuple[DeviceVec, int]
    count: tuple[DeviceVec, int]
    ready: Event


class SortedDigits:
    """What `DigitSorter.sort` leaves for sums: chunks of entries, valid until the sorter's next sort.

    Attributes
    ----------
    windows : Windows
    stride : int
        Bases of one multiple.
    chunks : list of Chunk
    """

    def __init__(
        self, windows: Windows, stride: int, chunks: list[Chunk], state: PinnedVec, ready: Event
    ) -> None:
        self.windows, self.stride, self.chunks = windows, stride, chunks
        self._state, self._ready = state, ready
        self._read: list[Event] = []

    def read_by(self, stream: Stream) -> None:
        """What is on the stream so far reads the entries: the next sort waits for it."""
        self._read.append(stream.record())

    def check(self) -> None:
        """Wait for the sort.

        Raises
        ------
        FormatError
            A scalar is not below the order; the message has its index.
        """
        self._ready.synchronize()
        state = np.array(self._state.borrow().numpy()).view(np.uint32).reshape(-1, 2)
        bad = [0xFFFFFFFF - int(b) for b in state[:, 1] if b]
        if bad:
            raise FormatError(f"scalar {min(bad)} is not below the order", index=min(bad))


class DigitSorter:
    """Sorts the digits of up to n scalars of a curve. Not for several threads at once; sorts follow one another.

    ::

        uploads | chunk 0 | chunk 1 ----- | chunk 2 --------- |
        stream            | sort |        | sort ---- |       | sort ------- |
                          events, a chunk each: sums begin while later chunks are on their way

    Parameters
    ----------
    curve : Curve
    windows : Windows
    n : int
        Bases of one multiple, and the most scalars of a sort.
    device : Device
    chunks : sequence of int, optional
        Scalars of each chunk, n together; `chunks_of` by default.
    stream, uploads : Stream, optional
        Of the kernels and of the copies; new ones by default.
    """

    def __init__(
        self,
        curve: Curve,
        windows: Windows,
        n: int,
        device: Device,
        *,
        chunks: Sequence[int] | None = None,
        stream: Stream | None = None,
        uploads: Stream | None = None,
    ) -> None:
        if windows.multiples * n > 1 << 31:
            raise ValueError(f"{windows.multiples} multiples of {n} bases are more than 2**31")
        self.curve, self.windows, self.n, self.device = curve, windows, n, device
        self.chunks = chunks_of(n) if chunks is None else list(chunks)
        if sum(self.chunks) != n or any(c < 1 for c in self.chunks):
            raise ValueError(f"chunks {self.chunks} do not make {n} scalars")
        if windows.windows * max(self.chunks, default=0) >= 1 << 32:
            raise ValueError(
                f"a chunk of {max(self.chunks)} scalars has 2**32 digits or more: smaller chunks are needed"
            )
        self.stream = Stream(device) if stream is None else stream
        self.uploads = Stream(device) if uploads is None else uploads
        self._module = backend.load("sort", curve.name, device)
        self._before: list[Event] = []  # reads of the entries of the sort before
        largest = max(self.chunks, default=0)
        self._vecs: list[DeviceVec] = []
        self._scalars = self._room(n, curve.fr)
        self._entries = [self._room(8 * windows.windows * c) for c in self.chunks]
        self._other = self._room(8 * windows.windows * largest)
        self._rows = self._room(4 * _BINS * windows._columns(largest))
        self._totals = self._room(4 * _BINS)
        self._state = self._room(8 * len(self.chunks))
        self._last: SortedDigits | None = None

    def close(self) -> None:
        """Give the memory back. Idempotent; sorts are no longer possible."""
        vecs, self._vecs = self._vecs, []
        for vec in vecs:
            vec.release()

    def sort(self, scalars: PinnedVec | DeviceVec, *, canonical: bool = True) -> SortedDigits:
        """Enqueue the sort of at most n scalars; what it returns replaces what the sort before returned.

        Parameters
        ----------
        scalars : PinnedVec or DeviceVec
            Of the scalar field, below the order. On the device they are there for `stream`.
        canonical : bool
            Or Montgomery form.
        """
        if scalars.elem != self.curve.fr or len(scalars) > self.n:
            raise ValueError(f"{len(scalars)} of {scalars.elem}: at most {self.n} of {self.curve.fr.name}")
        stream, n = self.stream, len(scalars)
        if self._last is not None:
            for event in self._last._read:
                stream.wait(event)
        self.uploads.wait(stream.record())  # the sort before has read its scalars
        chunks = []
        self._launch("sort_begin", 1, (self._state, len(self.chunks)))
        first = 0
        for k, most in enumerate(self.chunks):
            size = min(most, n - first)
            if size <= 0:
                break
            if isinstance(scalars, PinnedVec):
                self._scalars.upload(scalars, self.uploads, start=first, first=first, count=size)
                stream.wait(self.uploads.record())
                source: tuple[DeviceVec, int] = (self._scalars, first)
            else:
                source = (scalars, first)
            entries = self._chunk(source, k, first, size, canonical)
            chunks.append(Chunk(entries, (self._state, 8 * k), stream.record()))
            first += size
        state = PinnedVec("bytes", 8 * len(self.chunks))
        self._state.download(state, stream)
        self._last = SortedDigits(self.windows, self.n, chunks, state, stream.record())
        return self._last

    def _chunk(
        self, scalars: tuple[DeviceVec, int], k: int, first: int, n: int, canonical: bool
    ) -> tuple[DeviceVec, int]:
        w, state = self.windows, (self._state, 8 * k)
        digits = struct.pack(
            "<QQQiiii",
            n,
            first,
            self.n,
            int(not canonical),
            w.width,
            w.windows,
            w.sets,
        )
        (shift, bits), *rest = w.passes
        out, other = (self._entries[k], self._other)
        if len(rest) % 2:  # so that the last pass writes to `entries`
            out, other = other, out
        part = struct.pack("<iI", shift, (1 << bits) - 1)
        grid = (_ceil(n, _TILE_SCALARS), _ceil(w.windows, _TILE_WINDOWS))
        self._launch("sort_count_digits", grid, (scalars, digits, part, self._rows, state))
        self._scan(bits, grid[0] * grid[1])
        self._launch(
            "sort_scatter_digits", grid, (scalars, digits, part, self._rows, self._totals, out, state)
        )
        columns = _ceil(n * w.windows, _TILE)
        for shift, bits in rest:
            out, other = other, out
            part = struct.pack("<iI", shift, (1 << bits) - 1)
            self._launch("sort_count", columns, (other, state, part, self._rows))
            self._scan(bits, columns)
            self._launch("sort_scatter", columns, (other, state, part, self._rows, self._totals, out))
        return out, 0

    def _scan(self, bits: int, columns: int) -> None:
        threads = min(32 * _ceil(columns, 32), 1024)
        self._launch("sort_scan", 1 << bits, (self._rows, columns, self._totals), threads=threads)

    def _room(self, n: int, elem: Any = "bytes") -> DeviceVec:
        vec = DeviceVec(elem, n, self.device)
        vec.commit(n)
        self._vecs.append(vec)
        return vec

    def _launch(
        self, kernel: str, grid: int | tuple[int, int], args: tuple[object, ...], *, threads: int = _THREADS
    ) -> None:
        launch(self._module.function(kernel), grid, threads, args, stream=self.stream)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)

# SPDX-License-Identifier: Apache-2.0
"""Multiples of points on one GPU: tables for sums over fixed bases, and one base by many scalars (``cuda/tables.cu``)."""

from __future__ import annotations

from .. import backend
from .._core.device import Device, DeviceVec, Stream, launch
from .._core.memory import PinnedVec
from ..curves import Group, Words

_BLOCK = 128
_BLOCKS = 4  # of a multiprocessor, at most; each thread takes its share of the points, and inverts once
SCRATCH_BYTES = 256 << 20
_SCALAR_BITS = 256


class DeviceTables:
    """Multiples of points of one group, enqueued on a stream; no method waits for the device.

    Parameters
    ----------
    group : Group
    device : Device
    scratch_bytes : int, default 256 MiB
        Device memory for intermediate values, at most, given back behind each call; at least one point's are taken.
    """

    def __init__(self, group: Group, device: Device, *, scratch_bytes: int = SCRATCH_BYTES) -> None:
        self.group, self.device, self.scratch_bytes = group, device, scratch_bytes
        self._element = group.nbytes // 2
        self._module = backend.load("tables", group.curve_name, device)

    def extend(self, table: DeviceVec, spacing: int, multiples: int, stream: Stream) -> None:
        """Complete a table of which the points themselves are in place.

        Parameters
        ----------
        table : DeviceVec
            Of the group; its n points, affine, are followed by 2**spacing times these, and so on: its length becomes
            n * `multiples`, its capacity at least. Infinity stays infinity.
        spacing : int
            At least 1.
        multiples : int
            At least 1.
        stream : Stream

        Raises
        ------
        ValueError
            The vector is of another group, or has not that capacity.
        """
        n = len(table)
        if table.elem != self.group or table.capacity < n * multiples or spacing < 1 or multiples < 1:
            raise ValueError(
                f"{n} points of {table.elem}, capacity {table.capacity}, do not become {multiples} times as many points of "
                f"{self.group.name}, {spacing} bits apart"
            )
        if n == 0 or multiples == 1:
            return
        table.commit(n * (multiples - 1))
        count = max(1, min(n, self.scratch_bytes // (multiples * self._element)))
        with self._room(multiples * count * self._element) as factors:
            for first in range(0, n, count):
                points = min(count, n - first)
                self._shared_out(
                    "table", points, (table, factors, n, first, points, spacing, multiples), stream
                )

    def affine(self, points: DeviceVec, sums: DeviceVec, n: int, stream: Stream, *, start: int = 0) -> None:
        """``points[start + i]`` = the point of sum i, i < n; sums are rows X, Y, ZZ, ZZZ below 2p."""
        self._shared_out("affine", n, ((points, start), sums, n), stream)

    def _shared_out(self, kernel: str, n: int, args: tuple[object, ...], stream: Stream) -> None:
        # no more threads than run at once, so that few invert
        blocks = min(_ceil(n, _BLOCK), _BLOCKS * self.device.multiprocessors)
        self._launch(kernel, blocks, args, stream)

    def _launch(self, kernel: str, blocks: int, args: tuple[object, ...], stream: Stream) -> None:
        function = self._module.function(f"g{self.group.number}_{kernel}")
        launch(function, blocks, _BLOCK, args, stream=stream)

    def _room(self, nbytes: int) -> DeviceVec:
        vec = DeviceVec("bytes", nbytes, self.device)
        vec.commit(nbytes)
        return vec


class FixedBase:
    """Products of one point by many scalars: a table of its multiples, one entry a window.

    Parameters
    ----------
    group : Group
    base : ndarray of uint64, shape (1, group.limbs)
        An affine point.
    device : Device
    stream : Stream
        Makes the table; `multiply` on other streams waits for it by events.
    window : int, default 13
        Bits: the table has ceil(256 / window) * 2**(window - 1) points, 8 MiB in G1 of BLS12-381 by default.
    scratch_bytes : int, default 256 MiB
        As in `DeviceTables`.
    """

    def __init__(
        self,
        group: Group,
        base: Words,
        device: Device,
        stream: Stream,
        *,
        window: int = 13,
        scratch_bytes: int = SCRATCH_BYTES,
    ) -> None:
        if not 2 <= window <= 20:
            raise ValueError(f"window must be 2 to 20 bits, not {window}")
        self.group, self.device, self.window = group, device, window
        self.windows = _ceil(_SCALAR_BITS, window)
        self._tables = tables = DeviceTables(group, device, scratch_bytes=scratch_bytes)
        rows = self.windows << (window - 1)
        powers = DeviceVec(group, self.windows, device)  # 2^(window k) B
        pinned = PinnedVec.from_array(group, base)
        powers.upload(pinned, stream)
        pinned.release()
        tables.extend(powers, window, self.windows, stream)
        self._table = DeviceVec(group, rows, device)
        self._table.commit(rows)
        with tables._room(rows * 2 * group.nbytes) as sums:
            tables._launch("multiples", _ceil(rows, _BLOCK), (sums, powers, window - 1, rows), stream)
            tables.affine(self._table, sums, rows, stream)
        powers.release()
        self._ready = stream.record()

    def close(self) -> None:
        """Give the table back. Idempotent; products are no longer possible."""
        self._table.release()

    def multiply(self, out: DeviceVec, scalars: DeviceVec, stream: Stream) -> None:
        """Enqueue ``out[i] = scalars[i] * base`` for every scalar.

        Parameters
        ----------
        out : DeviceVec
            Of the group, as long as `scalars`; affine, infinity all zeros.
        scalars : DeviceVec
            Of the scalar field, canonical. Any integer below 2**256 will do.
        stream : Stream
        """
        n = len(scalars)
        if out.elem != self.group or len(out) != n or scalars.elem != self.group.scalar:
            raise ValueError(
                f"{n} scalars of {scalars.elem} do not give {len(out)} points of {out.elem}: {self.group} is needed"
            )
        if n == 0:
            return
        stream.wait(self._ready)
        sum_bytes = 2 * self.group.nbytes
        count = max(1, min(n, self._tables.scratch_bytes // sum_bytes))
        with self._tables._room(count * sum_bytes) as sums:
            for first in range(0, n, count):
                points = min(count, n - first)
                args = (sums, self._table, (scalars, first), points, self.window, self.windows)
                self._tables._launch("multiply", _ceil(points, _BLOCK), args, stream)
                self._tables.affine(out, sums, points, stream, start=first)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)

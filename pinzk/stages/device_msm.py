# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar sums on one GPU: plans, scratch, launches (kernels in ``cuda/msm.cuh``; digits in `device_sort`).

digits of a chunk --> runs summed into buckets --> parts of runs joined   for every chunk
buckets --> folded to `width` sums a set --> host: one chain of doublings
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .. import backend
from .._core import cpu
from .._core.device import Device, DeviceVec, Event, Stream, launch
from .._core.memory import PinnedVec
from ..curves import Curve, Group, Words
from .device_sort import SortedDigits, Windows

Parts = list[tuple[str, Event, Event]]

_THREADS, _JOIN_THREADS = 128, 256  # as in cuda/msm.cuh
_LEAST = 8  # entries of a walker
_REST = 512  # additions of a step from which one block a set does the rest


class DeviceMsm:
    """Sums over bases that stay on the device, one at a time, enqueued on a stream. Not for several threads at once.

    No method but `PendingSum.finish` waits for the device.

    Parameters
    ----------
    curve : Curve
    group : Group
        Of that curve.
    windows : Windows
        As the sorter's.
    device : Device
    stream : Stream, optional
        A new one by default.
    blocks : int, optional
        Blocks of the accumulating kernel; by default as many as the device runs at once.
    """

    def __init__(
        self,
        curve: Curve,
        group: Group,
        windows: Windows,
        device: Device,
        *,
        stream: Stream | None = None,
        blocks: int | None = None,
    ) -> None:
        self.group, self.windows, self.device = group, windows, device
        self.stream = Stream(device) if stream is None else stream
        self._module = backend.load(f"msm_g{group.number}", curve.name, device)
        self._blocks = blocks or resident_blocks(group) * device.multiprocessors
        self._vecs: list[DeviceVec] = []
        self._buckets = self._room(windows.buckets * self._sum_bytes)
        # parts of runs: of walkers, then of blocks of them, until one block is left
        nodes, self._levels = self._blocks * _THREADS, []
        while True:
            self._levels.append(
                (nodes, [self._room(nodes * b) for b in (self._sum_bytes, self._sum_bytes, 4, 4)])
            )
            if nodes == 1:
                break
            nodes = _ceil(nodes, _JOIN_THREADS)
        self._out = self._room(windows.sets * windows.width * self._sum_bytes)

    def close(self) -> None:
        """Give the memory back. Idempotent; sums are no longer possible."""
        vecs, self._vecs = self._vecs, []
        for vec in vecs:
            vec.release()

    def start(self, table: DeviceVec, digits: SortedDigits, *, parts: Parts | None = None) -> PendingSum:
        """Enqueue the sum of scalars times bases.

        Parameters
        ----------
        table : DeviceVec
            Of the group: the bases, then their multiples by 2**spacing, and so on: `windows.multiples` times
            ``digits.stride`` points, affine, infinity all zeros. There for `stream`.
        digits : SortedDigits
            Of as many scalars as there are bases, or of fewer: then the first bases count.
        parts : list, optional
            Receives a name and two events for every part.
        """
        w, stream = self.windows, self.stream
        if digits.windows != w:
            raise ValueError(f"digits of {digits.windows} for sums of {w}")
        if table.elem != self.group or len(table) < w.multiples * digits.stride:
            raise ValueError(
                f"{len(table)} points of {table.elem}: {w.multiples} multiples of {digits.stride} bases of {self.group.name}"
                " are needed"
            )
        with self._part("clear", parts):
            self._clear(self._buckets)
        for k, chunk in enumerate(digits.chunks):
            stream.wait(chunk.ready)
            args = (chunk.entries, chunk.count, table, self._buckets, int(k > 0), _LEAST, *self._levels[0][1])
            with self._part("accumulate", parts):
                self._launch("msm_accumulate", self._blocks, _THREADS, args)
            with self._part("join", parts):
                for (nodes, runs), (blocks, out) in zip(self._levels, self._levels[1:], strict=False):
                    self._launch("msm_join", blocks, _JOIN_THREADS, (*runs, nodes, self._buckets, *out))
        digits.read_by(stream)
        with self._part("fold", parts):
            self._fold()
        sums = PinnedVec("bytes", self._out.nbytes)
        self._out.download(sums, stream)
        return PendingSum(self.group, w, sums, digits, stream.record())

    def _fold(self) -> None:
        w = self.windows
        log_sums, level = w.width - 1, 1
        while level <= log_sums and level << (log_sums - level) > _REST:
            pairs = w.sets * level << (log_sums - level)
            blocks = _ceil(pairs, _THREADS)
            self._launch("msm_fold", blocks, _THREADS, (self._buckets, log_sums - level, level, pairs))
            level += 1
        self._launch("msm_fold_rest", w.sets, _JOIN_THREADS, (self._buckets, log_sums, level, self._out))

    @contextmanager
    def _part(self, name: str, parts: Parts | None) -> Iterator[None]:
        if parts is None:
            yield
            return
        begin = self.stream.record()
        yield
        parts.append((name, begin, self.stream.record()))

    @property
    def _sum_bytes(self) -> int:
        return 2 * self.group.nbytes

    def _clear(self, vec: DeviceVec) -> None:
        words = vec.nbytes // 8
        self._launch("msm_clear", min(_ceil(words, 1024), 1 << 14), 256, (vec, words))

    def _room(self, nbytes: int) -> DeviceVec:
        vec = DeviceVec("bytes", nbytes, self.device)
        vec.commit(nbytes)
        self._vecs.append(vec)
        return vec

    def _launch(self, kernel: str, grid: int, threads: int, args: tuple[object, ...]) -> None:
        launch(self._module.function(kernel), grid, threads, args, stream=self.stream)


class PendingSum:
    """A sum that the device works on. Made by `DeviceMsm.start`."""

    def __init__(
        self, group: Group, windows: Windows, sums: PinnedVec, digits: SortedDigits, ready: Event
    ) -> None:
        self._group, self._windows, self._sums, self._digits, self._ready = (
            group,
            windows,
            sums,
            digits,
            ready,
        )

    def finish(self) -> Words:
        """Wait for the sum, once.

        Returns
        -------
        ndarray of uint64, shape (1, group.limbs)

        Raises
        ------
        FormatError
            A scalar is not below the order; the message has its index.
        DeviceError
        """
        self._ready.synchronize()
        self._digits.check()
        rows = np.array(self._sums.borrow().numpy()).view(np.uint64).reshape(-1, 2 * self._group.limbs)
        self._sums.release()
        return cpu.weighted_sum(self._group, rows, self._windows.width)


def resident_blocks(group: Group) -> int:
    """Blocks of the accumulating kernel that a multiprocessor holds, as cuda/msm.cuh bounds its registers."""
    words = group.limbs // 2
    return 4 if words <= 4 else 3 if words <= 6 else 2


def _ceil(a: int, b: int) -> int:
    return -(-a // b)

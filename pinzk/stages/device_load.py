# SPDX-License-Identifier: Apache-2.0
"""Arrays in ordinary memory to a GPU: threads copy them into pinned chunks, which the GPU reads while others are filled."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from .._core.device import DeviceVec, Stream
from .._core.memory import PinnedPool, PinnedVec

# 4 MiB and eight threads carry 51 GB/s of the link's 55 on an H200; one thread 8 (docs/memory.md)
CHUNK_BYTES, THREADS = 4 << 20, 8


class Loader:
    """Threads with two pinned chunks each, kept from one array to the next. Thread-safe: arrays go one after another.

    Parameters
    ----------
    elem : Field, Group or "bytes"
    pool : PinnedPool, optional
        Of the chunks. Default: the process's.
    threads : int
    chunk_bytes : int, optional
    """

    def __init__(
        self,
        elem: Any,
        *,
        pool: PinnedPool | None = None,
        threads: int = THREADS,
        chunk_bytes: int | None = None,
    ) -> None:
        nbytes = CHUNK_BYTES if chunk_bytes is None else chunk_bytes
        self._elem, self._pool = elem, pool
        self._rows = nbytes if elem == "bytes" else max(1, nbytes // (8 * elem.limbs))
        self._lock = threading.Lock()
        self._idle: list[list[PinnedVec]] = [[] for _ in range(threads)]  # chunks are made at their first use

    def load(self, out: DeviceVec, n: int, fill: Callable[[int, NDArray[Any]], None], stream: Stream) -> None:
        """Write n elements of a device vector, computed or copied chunk by chunk; returns when all are enqueued.

        Parameters
        ----------
        out : DeviceVec
            New; its length becomes n.
        n : int
        fill : function of (int, ndarray)
            Writes the elements from that index on into an array, shape (rows, limbs), of bytes (rows,); called from several
            threads.
        stream : Stream
            Work behind it on this stream finds the elements there.

        Raises
        ------
        Exception
            What `fill` raised, once no thread is in it any more.
        """
        rows, numbers = self._rows, itertools.count()  # next() is atomic
        out.commit(n)

        def work(chunks: list[PinnedVec]) -> None:
            for turn in itertools.count():
                first = next(numbers) * rows
                if first >= n:
                    return
                if turn < 2 and len(chunks) <= turn:
                    chunks.append(PinnedVec(self._elem, rows, pool=self._pool))
                    chunks[-1].resize(rows)
                chunk, count = chunks[turn % 2], min(rows, n - first)
                fill(first, chunk.borrow_mut(wait=True).numpy()[:count])
                out.upload(chunk, stream, start=first, count=count)

        with self._lock:
            used = self._idle[: max(1, min(len(self._idle), -(-n // rows)))]
            if len(used) == 1:
                work(used[0])
                return
            with ThreadPoolExecutor(len(used), "pinzk-load") as workers:
                for done in [workers.submit(work, chunks) for chunks in used]:
                    done.result()

    def close(self) -> None:
        """Let go of the chunks: their blocks go home when they are read. Idempotent; another array takes new ones."""
        with self._lock:
            self._idle = [[] for _ in self._idle]


def load(
    out: DeviceVec,
    n: int,
    fill: Callable[[int, NDArray[Any]], None],
    stream: Stream,
    *,
    pool: PinnedPool | None = None,
    threads: int = THREADS,
) -> None:
    """`Loader.load` for one array, with a loader that is not kept: of a small one a single chunk, as large as need be."""
    nbytes = n * (1 if out.elem == "bytes" else 8 * out.elem.limbs)
    chunk_bytes = max(1, min(CHUNK_BYTES, nbytes))
    Loader(out.elem, pool=pool, threads=threads, chunk_bytes=chunk_bytes).load(out, n, fill, stream)


def copy(array: NDArray[Any]) -> Callable[[int, NDArray[Any]], None]:
    """A `fill` that takes rows from an array."""

    def fill(first: int, rows: NDArray[Any]) -> None:
        rows[:] = array[first : first + len(rows)]

    return fill

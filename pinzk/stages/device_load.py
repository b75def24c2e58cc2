# SPDX-License-Identifier: Apache-2.0
"""Arrays in ordinary memory to a GPU: threads copy them into pinned chunks, which the GPU reads while others are filled."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from .._core.device import DeviceVec, Stream
from .._core.memory import PinnedPool, PinnedVec

# 4 MiB and eight threads carry 51 GB/s of the link's 55 on an H200; one thread 8 (docs/memory.md)
CHUNK_BYTES, THREADS = 4 << 20, 8


def load(
    out: DeviceVec,
    n: int,
    fill: Callable[[int, NDArray[Any]], None],
    stream: Stream,
    *,
    pool: PinnedPool | None = None,
    threads: int = THREADS,
) -> None:
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
    pool : PinnedPool, optional
        For two chunks a thread. Default: the process's.
    threads : int

    Raises
    ------
    Exception
        What `fill` raised, once no thread is in it any more.
    """
    rows = CHUNK_BYTES if out.elem == "bytes" else max(1, CHUNK_BYTES // (8 * out.elem.limbs))
    numbers = itertools.count()  # next() is atomic
    out.commit(n)

    def work() -> None:
        # no explicit release: what `fill` raises may hold a view; a chunk's block goes home when it is read
        chunks = [PinnedVec(out.elem, rows, pool=pool) for _ in range(2)]
        for chunk in chunks:
            chunk.resize(rows)
        for chunk in itertools.cycle(chunks):
            first = next(numbers) * rows
            if first >= n:
                return
            count = min(rows, n - first)
            fill(first, chunk.borrow_mut(wait=True).numpy()[:count])
            chunk.truncate(count)  # less in the last chunk alone
            out.upload(chunk, stream, start=first)

    count = max(1, min(threads, -(-n // rows)))
    with ThreadPoolExecutor(count, "pinzk-load") as workers:
        for done in [workers.submit(work) for _ in range(count)]:
            done.result()


def copy(array: NDArray[Any]) -> Callable[[int, NDArray[Any]], None]:
    """A `fill` that takes rows from an array."""

    def fill(first: int, rows: NDArray[Any]) -> None:
        rows[:] = array[first : first + len(rows)]

    return fill

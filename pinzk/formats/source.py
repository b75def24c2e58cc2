# SPDX-License-Identifier: Apache-2.0
"""Where bytes come from: one reader for paths, bytes, buffers, file objects and pipes.

A regular file is read by ``pread`` straight into the caller's array, off the GIL and on several threads. Nothing is mapped,
so a file that is cut or overwritten while or after it is read can neither kill the process nor change what was loaded.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

_PIECE = 4 << 20  # bytes one thread reads at a time


class Source:
    """Random access to the bytes of one input. Make one with `Source.open`; close it, or use ``with``.

    Attributes
    ----------
    name : str
        The path, or ``<zkey>`` and the like for bytes without one: what errors call the input.
    size : int
        Number of bytes.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size

    @staticmethod
    def open(src: Any, kind: str) -> Source:
        """Open an input.

        Parameters
        ----------
        src : str, path, bytes, buffer, NumPy array, binary file object or Source
            A file object is read from where it stands; one on a regular file is read in place, any other to its end. An
            open source is returned as it is.
        kind : str
            What the bytes should be (``"zkey"``), for messages.

        Raises
        ------
        OSError
            The path cannot be opened.
        TypeError
            None of the above, or a text file.
        """
        if isinstance(src, Source):
            return src
        if isinstance(src, (str, os.PathLike)):
            return _open_path(os.fspath(src))
        if hasattr(src, "read"):
            return _open_file_object(src, kind)
        try:
            view = memoryview(src)
        except TypeError:
            raise TypeError(
                f"a {kind} is read from a path, bytes, a buffer or a binary file object, not {type(src).__name__}"
            ) from None
        if not view.c_contiguous:
            raise TypeError(f"the buffer of a {kind} must be contiguous")
        return _Memory(f"<{kind}>", view)

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset`."""
        out = bytearray(size)
        self._fill(memoryview(out), offset)
        return bytes(out)

    def read_into(self, array: NDArray[Any], offset: int, *, threads: int = 1) -> None:
        """Fill a contiguous array with the bytes from `offset`."""
        with self.reading([(array, offset)], threads=threads):
            pass

    @contextmanager
    def reading(self, parts: Iterable[tuple[NDArray[Any], int]], *, threads: int = 1) -> Iterator[None]:
        """Fill several ``(array, offset)`` on `threads` threads while the body runs; all are filled when it is left."""
        pieces = []
        for array, offset in parts:
            view = array.reshape(-1).view(np.uint8).data
            pieces += [(view[i : i + _PIECE], offset + i) for i in range(0, len(view), _PIECE)]
        if sum(len(view) for view, _ in pieces) <= _PIECE:  # not worth a thread
            for view, offset in pieces:
                self._fill(view, offset)
            yield
            return
        with ThreadPoolExecutor(min(threads, len(pieces))) as pool:
            try:
                futures = [pool.submit(self._fill, view, offset) for view, offset in pieces]
                yield
                for future in futures:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def close(self) -> None:
        """Let go of the file or buffer."""

    def _fill(self, view: memoryview, offset: int) -> None:
        raise NotImplementedError

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _File(Source):
    # a regular file: positioned reads from `start`
    def __init__(self, name: str, fd: int, start: int, owned: bool) -> None:
        super().__init__(name, max(0, os.fstat(fd).st_size - start))
        self._fd, self._start, self._owned = fd, start, owned

    def _fill(self, view: memoryview, offset: int) -> None:
        while len(view):
            done = os.preadv(self._fd, [view], self._start + offset)
            if done == 0:
                raise FormatError("the file became shorter while it was read", path=self.name)
            view, offset = view[done:], offset + done

    def close(self) -> None:
        if self._owned:
            self._owned = False
            os.close(self._fd)


class _Memory(Source):
    def __init__(self, name: str, view: memoryview) -> None:
        super().__init__(name, view.nbytes)
        self._bytes = np.frombuffer(view if view.nbytes else b"", dtype=np.uint8)

    def _fill(self, view: memoryview, offset: int) -> None:
        np.copyto(
            np.frombuffer(view, dtype=np.uint8), self._bytes[offset : offset + len(view)]
        )  # off the GIL

    def close(self) -> None:
        self._bytes = np.empty(0, dtype=np.uint8)


def _open_path(path: str | bytes) -> Source:
    name = os.fsdecode(path)
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if stat.S_ISREG(mode):
            return _File(name, fd, 0, owned=True)
        with open(fd, "rb", closefd=False) as stream:  # a pipe or device: to its end
            source = _Memory(name, memoryview(stream.read()))
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return source


def _open_file_object(file: Any, kind: str) -> Source:
    name = getattr(file, "name", None)
    name = os.fsdecode(name) if isinstance(name, (str, bytes)) else f"<{kind}>"
    raw = file.raw if isinstance(file, (io.BufferedReader, io.BufferedRandom)) else file
    if isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
        return _File(name, raw.fileno(), file.tell(), owned=False)
    data = file.read()  # everything else, gzip and zip members among them, knows best how to read itself
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"a {kind} is binary: open the file with mode 'rb'")
    return _Memory(name, memoryview(data))

# SPDX-License-Identifier: Apache-2.0
"""Where bytes go: a file that appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


@contextmanager
def replacing(dst: str | os.PathLike[str] | IO[bytes]) -> Iterator[IO[bytes]]:
    """A binary file to write to.

    Parameters
    ----------
    dst : path or binary file object
        A path is replaced when the block ends and all is on disk; it is left as it was when the block raises. A file object
        is handed out as it is.
    """
    if not isinstance(dst, (str, os.PathLike)):
        yield dst
        return
    path = os.path.realpath(dst)  # a link keeps pointing where it did
    fd, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with open(fd, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), _mode(path))
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0o077)
        os.umask(umask)
        return 0o666 & ~umask

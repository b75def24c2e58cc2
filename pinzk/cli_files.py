# SPDX-License-Identifier: Apache-2.0
"""Files of the command line: `-` is standard input or output, and the files of one command appear together or not at all.

A new file is written without a name (``O_TMPFILE``) or under a hidden one in the folder of its target, synced, and then
renamed over the target; only renames are left when the first target changes. A failure before the last rename undoes the
earlier ones. Pipes and devices are written to as they are, before any rename.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import signal
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence

STANDARD = "-"


class UsageError(Exception):
    """The command line cannot be carried out as written; exit code 2."""

    exit_code = 2


def check_paths(inputs: Mapping[str, str | None], outputs: Mapping[str, str]) -> None:
    """Refuse, before any work, files that could not be read or written as asked.

    Parameters
    ----------
    inputs, outputs : mapping of str to str
        What the file is (for the message) to its path; an input of None is not given.

    Raises
    ------
    UsageError
        `-` twice; a missing input; an output that is an input, another output, a folder, write-protected, or in a folder
        that does not exist or cannot be written.
    """
    given = {what: path for what, path in inputs.items() if path is not None}
    for use, paths in (("input", given), ("output", outputs)):
        standard = [what for what, path in paths.items() if path == STANDARD]
        if len(standard) > 1:
            raise UsageError(
                f"{' and '.join(standard)} cannot both be standard {use}: name a file for one of them"
            )
    for what, path in given.items():
        if path != STANDARD:
            _check_input(what, path)
    seen = {what: path for what, path in given.items() if path != STANDARD}
    for what, path in outputs.items():
        if is_stream(path):
            continue
        for other, other_path in seen.items():
            if _same_file(path, other_path):
                raise UsageError(
                    f"{what} and {other} are the same file, {path}: nothing was touched; name another file"
                )
        seen[what] = path
        _check_output(what, path)


def source(path: str) -> str | bytes:
    """What `load` takes for a path of the command line: the path, or all bytes of a pipe or of standard input."""
    if path != STANDARD:
        if not is_stream(path):
            return path
        with open(path, "rb") as stream:
            return stream.read()
    if sys.stdin is None:
        raise UsageError("standard input is closed: name a file")
    return sys.stdin.buffer.read()


def is_stream(path: str) -> bool:
    """Whether writing goes into something that is there already and cannot be replaced: `-`, a pipe, a device."""
    try:
        return path == STANDARD or not (stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISDIR(mode))
    except OSError:
        return False


def write_stdout(data: bytes) -> None:
    """Write all of `data` to standard output and flush it."""
    if sys.stdout is None:
        raise UsageError("standard output is closed: name a file")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_together(files: Sequence[tuple[str, bytes]]) -> None:
    """Write files so that all of them appear, or none.

    Parameters
    ----------
    files : sequence of (path, data)
        The last one is renamed last, so it is the one to wait for. Existing files keep their permissions.

    Raises
    ------
    OSError
        As the system gave it. Every target is as it was, and nothing else is left in its folder.
    """
    staged = [_Staged(path, data) for path, data in files if not is_stream(path)]
    try:
        for new in staged:
            new.write()
        for path, data in files:
            if is_stream(path):
                _write_stream(path, data)
        with _signals_ignored():  # nothing but a few system calls; without this Ctrl-C could split the pair
            try:
                for new in staged:
                    new.commit()
            except BaseException:
                for new in reversed(staged):
                    new.undo()
                raise
    finally:
        with _signals_ignored():
            for new in staged:
                new.discard()


class _Staged:
    """A new file beside its target: first without a name, then under a hidden one, then under the target's."""

    def __init__(self, path: str, data: bytes) -> None:
        self.target = os.path.realpath(path)  # a symbolic link stays; what it names is replaced
        self.data = data
        self.folder = os.path.dirname(self.target)
        self.name = os.path.join(self.folder, f".pinzk-{secrets.token_hex(8)}.tmp")
        self.backup = self.name + ".old"
        self.fd: int | None = None
        self.nameless = False
        self.committed = False

    def write(self) -> None:
        self.fd, self.nameless = self._open()
        left = memoryview(self.data)
        while left:
            left = left[os.write(self.fd, left) :]
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(self.fd, stat.S_IMODE(os.stat(self.target).st_mode))
        os.fsync(self.fd)

    def _open(self) -> tuple[int, bool]:
        if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
            try:
                return os.open(self.folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), True
            except OSError as error:
                # what kernels and file systems without it answer
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                    raise
        return os.open(self.name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666), False

    def commit(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if self.nameless:
                # naming src_dir_fd makes Python call linkat with AT_SYMLINK_FOLLOW, which this needs
                os.link(f"/proc/self/fd/{self.fd}", self.name, src_dir_fd=folder, follow_symlinks=True)
            if os.path.exists(self.target):
                try:
                    os.link(self.target, self.backup)
                except OSError:  # no hard links here
                    shutil.copy2(self.target, self.backup)
            os.replace(self.name, self.target)
            self.committed = True
            os.fsync(folder)
        finally:
            os.close(folder)

    def undo(self) -> None:
        """Put back what was there, even where putting back another file fails."""
        if self.committed:
            with contextlib.suppress(OSError):
                if os.path.exists(self.backup):
                    os.replace(self.backup, self.target)
                else:
                    os.unlink(self.target)

    def discard(self) -> None:
        for path in (self.name, self.backup):
            with contextlib.suppress(OSError):
                os.unlink(path)
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None


def _write_stream(path: str, data: bytes) -> None:
    if path == STANDARD:
        write_stdout(data)
        return
    with open(path, "wb", buffering=0) as stream:
        left = memoryview(data)
        while left:
            left = left[stream.write(left) :]


def _check_input(what: str, path: str) -> None:
    if os.path.isdir(path):
        raise UsageError(f"{what} {path} is a folder: name a file")
    if not os.path.exists(path):
        raise UsageError(f"{what} {path} does not exist: check the path")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{what} {path} cannot be read: check its permissions")


def _check_output(what: str, path: str) -> None:
    folder = os.path.dirname(os.path.realpath(path))
    if not path or os.path.isdir(path):
        raise UsageError(f"{what} {path!r} is a folder: name a file")
    if not os.path.isdir(folder):
        raise UsageError(f"{what} {path}: its folder does not exist: create {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{what} {path}: its folder cannot be written: check the permissions of {folder}")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise UsageError(f"{what} {path} is write-protected: remove it or name another file")


def _same_file(a: str, b: str) -> bool:
    try:
        return os.path.samefile(a, b)
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    kept = []
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            kept.append((number, signal.signal(number, signal.SIG_IGN)))
    except ValueError:  # not the main thread: handlers run elsewhere anyway
        pass
    try:
        yield
    finally:
        for number, handler in kept:
            signal.signal(number, handler)

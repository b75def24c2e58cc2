# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk: the user's cache, and the folder of those that came with pinzk. One file format for both.

A file is one line (a mark and the SHA-256 of all that follows), one line of JSON (what it is, and the compiler's log), and
the image as the compiler gave it. A file that is cut short, altered, or made for another key is as good as absent: its
owner compiles again and writes over it. Nothing here is needed: where the folder cannot be used, one log line says so.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

log = logging.getLogger(__name__)

MARK = b"pinzk kernel 1 "
LIMIT = 256 << 20  # bytes the cache may keep
STALE = 3600  # seconds after which an unfinished file belongs to nobody
_said: set[str] = set()


def pack(header: dict[str, str], image: bytes) -> bytes:
    """The bytes of a file."""
    body = json.dumps(header, sort_keys=True).encode() + b"\n" + image
    return MARK + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(data: bytes) -> tuple[dict[str, str], bytes] | None:
    """Header and image of a file; None unless every byte is as it was written."""
    first, _, body = data.partition(b"\n")
    if first != MARK + hashlib.sha256(body).hexdigest().encode():
        return None
    header, _, image = body.partition(b"\n")
    return json.loads(header), image


def default_folder() -> Path:
    """``PINZK_CACHE_DIR``, else ``pinzk`` in the user's cache folder (``XDG_CACHE_HOME``, else ``~/.cache``)."""
    if named := os.environ.get("PINZK_CACHE_DIR", "").strip():
        return Path(named).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME", "").strip())
    # the standard asks to ignore what is not absolute
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "pinzk"


class Cache:
    """Files of one user, by name; any number of threads and processes may use the folder, without locks.

    A file appears by a rename, so a reader sees all of it or none, and two writers of one name both wrote the same. The
    folder and its files belong to the user alone (0700, 0600): what is read from them runs on the device. A folder or a
    file of another user is not trusted.

    Parameters
    ----------
    folder : Path, optional
        ``default_folder() / "kernels"`` by default; made when the first file is written.
    limit : int
        Bytes to keep; beyond them the files unused for longest go.
    """

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self.folder = default_folder() / "kernels" if folder is None else folder
        self.limit = limit

    def get(self, name: str, key: str) -> tuple[dict[str, str], bytes] | None:
        """Header and image of file `name`, or None where there is no sound file made for `key`."""
        try:
            handle = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with open(handle, "rb") as f:
            about = os.fstat(handle)
            if not (stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()):
                return None
            try:
                found = unpack(f.read())
            except OSError:
                return None
            if found is None or found[0].get("key") != key:
                return None
            with suppress(OSError):
                os.utime(handle)  # used now: the last to go
        return found

    def put(self, name: str, header: dict[str, str], image: bytes) -> None:
        """Write file `name`; where that fails, one log line says why and the work goes on."""
        try:
            self._make_folder()
            handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=self.folder)  # mode 0600
            try:
                with open(handle, "wb") as f:
                    f.write(pack(header, image))
                os.replace(temporary, self.folder / name)
            except BaseException:
                os.unlink(temporary)
                raise
            self._trim()
        except OSError as error:
            line = f"kernel cache {self.folder} cannot be used ({error.strerror or error}): compiled kernels are not kept"
            if line not in _said:
                _said.add(line)
                log.warning("%s; PINZK_CACHE_DIR names another folder", line)

    def entries(self) -> list[tuple[str, int]]:
        """Names and sizes in bytes of the files, the last used first."""
        return [
            (path.name, about.st_size) for about, path in reversed(self._files()) if path.suffix != ".part"
        ]

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = os.lstat(self.folder)
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            raise PermissionError(None, "it belongs to another user")
        if stat.S_IMODE(about.st_mode) & 0o077:
            os.chmod(self.folder, 0o700)

    def _files(self) -> list[tuple[os.stat_result, Path]]:
        """The files, the one unused for longest first."""
        found = []
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                with suppress(OSError):  # another process may remove it now
                    found.append((entry.stat(follow_symlinks=False), Path(entry.path)))
        return sorted(found, key=lambda f: f[0].st_mtime_ns)

    def _trim(self) -> None:
        files = self._files()
        total = sum(about.st_size for about, _ in files)
        for about, path in files[:-1]:  # what was just written stays
            stale = path.suffix == ".part" and time.time() - about.st_mtime > STALE
            if stale or (total > self.limit and path.suffix != ".part"):
                with suppress(OSError):
                    os.unlink(path)
                total -= about.st_size

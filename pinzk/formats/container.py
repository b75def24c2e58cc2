# SPDX-License-Identifier: Apache-2.0
"""The container that zkey, wtns and r1cs share: magic, version, then numbered sections in any order; little-endian."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from ..curves import BLS12_381, BN254, Curve, Field, Words
from ..errors import FormatError
from .output import replacing
from .source import Source

_HEADER, _ENTRY = struct.Struct("<4sII"), struct.Struct("<IQ")
_MAX_SECTIONS = 1000  # files have about ten; a table of millions would only be slow to walk

# number, size in bytes, buffers of that many bytes together
SectionToWrite = tuple[int, int, Iterable[Any]]


@dataclass(frozen=True)
class Section:
    """Where the payload of a section lies."""

    number: int
    offset: int
    size: int


class Container:
    """The section table of one open source.

    Parameters
    ----------
    source : Source
    kind : str
        The magic: ``"zkey"``, ``"wtns"`` or ``"r1cs"``.
    version : int
        The one version supported.
    titles : dict of int to str
        The sections that matter, and what they hold; any other is skipped. Bytes after the last section are ignored.

    Raises
    ------
    FormatError
        Another magic or version; a section that leaves the file; a section that matters twice.
    """

    def __init__(self, source: Source, kind: str, version: int, titles: dict[int, str]) -> None:
        self.source = source
        self.titles = titles
        self.sections: dict[int, Section] = {}
        if source.size < _HEADER.size:
            what = "empty" if source.size == 0 else f"{source.size} bytes long"
            raise self.error(f"the {kind} is {what}, too short for the {_HEADER.size}-byte file header")
        magic, number, count = _HEADER.unpack(source.read(0, _HEADER.size))
        if magic != kind.encode():
            raise self.error(f"not a {kind} file: its magic is {magic!r}, expected {kind.encode()!r}")
        if number != version:
            raise self.error(f"unsupported {kind} version {number} (supported: {version})")
        self._read_table(count)

    def _read_table(self, count: int) -> None:
        at, size = _HEADER.size, self.source.size
        for i in range(count):
            if i == _MAX_SECTIONS:
                raise self.error(f"section table: {count} sections, at most {_MAX_SECTIONS} are read")
            if size - at < _ENTRY.size:
                raise self.error(f"section table: the file ends before section {i + 1} of {count}")
            number, length = _ENTRY.unpack(self.source.read(at, _ENTRY.size))
            at += _ENTRY.size
            if length > size - at:
                raise self.error(
                    f"file truncated: the section needs {length} bytes, only {size - at} remain", number
                )
            if number in self.titles:
                if number in self.sections:
                    raise self.error("the section appears twice", number)
                self.sections[number] = Section(number, at, length)
            at += length

    def error(self, reason: str, section: int | None = None, index: int | None = None) -> FormatError:
        """A FormatError that names this source and what the section holds."""
        if section in self.titles:
            reason = f"{self.titles[section]}: {reason}"
        return FormatError(reason, path=self.source.name, section=section, index=index)

    def section(self, number: int) -> Section:
        """A section that must be there."""
        found = self.sections.get(number)
        if found is None:
            raise self.error("the section is missing", number)
        return found

    def rows(self, number: int, count: int, words: int, unit: str, expected: str) -> Section:
        """A section that must hold exactly `count` rows of `words` 64-bit words; `expected` names the count."""
        section, step = self.section(number), 8 * words
        if section.size != count * step:
            extra = f" and {section.size % step} bytes" if section.size % step else ""
            raise self.error(f"{section.size // step} {unit}{extra}, expected {expected} = {count}", number)
        return section


class Fields:
    """Reads the fields of a header section one after the other; a header that ends early is a FormatError."""

    def __init__(self, container: Container, number: int) -> None:
        section = container.section(number)
        self._container, self._number, self._size, self._at = container, number, section.size, 0
        self._data = container.source.read(section.offset, min(section.size, 4096))

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if self._at + size > len(self._data):
            raise self.error(f"{self._size} bytes, at least {self._at + size} are needed")
        self._at += size
        return self._data[self._at - size : self._at]

    def u32(self) -> int:
        """The next 4 bytes as a number."""
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        """The next 8 bytes as a number."""
        return int.from_bytes(self.take(8), "little")

    def words(self, limbs: int) -> Words:
        """One row of `limbs` words."""
        return np.frombuffer(self.take(8 * limbs), dtype="<u8").astype(np.uint64).reshape(1, limbs)

    def curve(self, role: str, field_of: Callable[[Curve], Field]) -> Curve:
        """The curve told by the size and modulus of its `role` ("base" or "scalar") field."""
        nbytes = self.u32()
        known = sorted({field_of(c).nbytes for c in (BN254, BLS12_381)})
        if nbytes not in known:
            sizes = " or ".join(str(n) for n in known)
            raise self.error(f"{role} field size of {nbytes} bytes, expected {sizes} (BN254, BLS12-381)")
        modulus = int.from_bytes(self.take(nbytes), "little")
        for curve in (BN254, BLS12_381):
            if field_of(curve).modulus == modulus and field_of(curve).nbytes == nbytes:
                return curve
        raise self.error(f"unsupported {role} field modulus {modulus:#x} (neither BN254 nor BLS12-381)")

    def end(self) -> None:
        """Nothing may follow."""
        if self._at != self._size:
            raise self.error(f"{self._size} bytes, expected {self._at}")

    def error(self, reason: str) -> FormatError:
        """A FormatError that names the header."""
        return self._container.error(reason, self._number)


def field_bytes(field: Field) -> bytes:
    """A field as headers hold it: its size in bytes, its modulus."""
    return field.nbytes.to_bytes(4, "little") + field.modulus.to_bytes(field.nbytes, "little")


def write_container(
    dst: str | os.PathLike[str] | IO[bytes], kind: str, version: int, sections: Sequence[SectionToWrite]
) -> None:
    """Write sections in the order given.

    Parameters
    ----------
    dst : path or binary file object
        A path is replaced when all is written and on disk, or left as it was.
    kind : str
    version : int
    sections : sequence of (number, size, buffers)
    """
    with replacing(dst) as file:
        _write(file, kind, version, sections)


def _write(file: IO[bytes], kind: str, version: int, sections: Sequence[SectionToWrite]) -> None:
    file.write(_HEADER.pack(kind.encode(), version, len(sections)))
    for number, size, buffers in sections:
        file.write(_ENTRY.pack(number, size))
        written = 0
        for buffer in buffers:
            written += memoryview(buffer).nbytes
            file.write(buffer)
        if written != size:
            raise RuntimeError(f"{kind} section {number}: {written} bytes written, {size} announced")

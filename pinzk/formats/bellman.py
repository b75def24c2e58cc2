# SPDX-License-Identifier: Apache-2.0
"""bellman and bellperson parameter files (Groth16 on BLS12-381), and the ``.vk`` that is their beginning.

No magic, no version, no section table: six points, then six lists, each a big-endian count and so many uncompressed points
(`pinzk._core.cpu.decode_points`). Bytes may follow the last list: those of a ceremony's record. The matrices are not inside:
who proves brings the constraints or their values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np

from .._core import cpu
from ..curves import BLS12_381, Curve, Group, Words
from ..errors import FormatError
from .output import replacing
from .proof import VerifyingKeyRecord
from .source import Source

_G1, _G2 = BLS12_381.g1, BLS12_381.g2
# field of the record, what bellman calls it, group
_POINTS = (
    ("alpha_1", "alpha_g1", _G1),
    ("beta_1", "beta_g1", _G1),
    ("beta_2", "beta_g2", _G2),
    ("gamma_2", "gamma_g2", _G2),
    ("delta_1", "delta_g1", _G1),
    ("delta_2", "delta_g2", _G2),
)
_IC = ("ic", "ic", _G1)
_LISTS = (
    ("h", "h", _G1),
    ("l", "l", _G1),
    ("a", "a", _G1),
    ("b_1", "b_g1", _G1),
    ("b_2", "b_g2", _G2),
)
_PIECE = 1 << 12  # points written at a time
_GUESSED_FROM = 64  # bytes
_LARGEST_FIRST_BYTE = BLS12_381.fp.modulus >> 8 * (BLS12_381.fp.nbytes - 1)
Level = Literal["range", "curve", "subgroup"]
_LEVEL: dict[str, Level] = {"none": "range", "curve": "curve", "full": "subgroup"}
_FAULTS = {
    "encoding": "the flags of its first byte are not those of an uncompressed point",
    "infinity": "the point at infinity",
    "coordinate": "a coordinate is not reduced mod q",
    "curve": "the point is not on the curve",
    "subgroup": "the point is on the curve but not in the subgroup of order r",
}


@dataclass(frozen=True, eq=False)
class BellmanKey:
    """A whole parameter file. Points are affine Montgomery rows, none infinite; the arrays belong to the record.

    Wires are the inputs, the constant one first, then the auxiliary ones.

    Attributes
    ----------
    curve : Curve
        BLS12-381.
    alpha_1, beta_1, delta_1 : ndarray of uint64, shape (1, curve.g1.limbs)
    beta_2, gamma_2, delta_2 : ndarray of uint64, shape (1, curve.g2.limbs)
    ic : ndarray of uint64, shape (n_inputs, curve.g1.limbs)
    h : ndarray of uint64, shape (domain_size - 1, curve.g1.limbs)
        tau^i Z(tau) / delta: in the monomial basis.
    l : ndarray of uint64, shape (n_aux, curve.g1.limbs)
    a : ndarray of uint64, shape (n_a, curve.g1.limbs)
        Of the wires that occur in A, in order: every input (each has a row ``input_i * 0 = 0``) and some auxiliary ones.
    b_1 : ndarray of uint64, shape (n_b, curve.g1.limbs)
    b_2 : ndarray of uint64, shape (n_b, curve.g2.limbs)
        Of the wires that occur in B, in order.
    """

    curve: Curve
    alpha_1: Words
    beta_1: Words
    beta_2: Words
    gamma_2: Words
    delta_1: Words
    delta_2: Words
    ic: Words
    h: Words
    l: Words  # noqa: E741  # as in the paper and in bellman
    a: Words
    b_1: Words
    b_2: Words

    @property
    def n_vars(self) -> int:
        """Wires, the constant one included."""
        return len(self.ic) + len(self.l)

    @property
    def n_public(self) -> int:
        """Public inputs, the constant one not included."""
        return len(self.ic) - 1

    @property
    def domain_size(self) -> int:
        """A power of two."""
        return len(self.h) + 1


def looks_like_bellman(source: Source) -> bool:
    """Whether a file can only be one of bellman's: it begins with a coordinate below q, which is neither magic nor text."""
    head = source.read(0, min(_GUESSED_FROM, source.size))
    return not head.isascii() and head[0] <= _LARGEST_FIRST_BYTE


def read_bellman(src: Any, *, check: str = "curve", threads: int | None = None) -> BellmanKey:
    """Read a parameter file.

    Parameters
    ----------
    src : path, bytes, buffer, binary file object or Source
    check : {"none", "curve", "full"}
        ``none``: counts, coordinates below q, no infinity. ``curve``: also that every point is on its curve. ``full``: also
        that it is in the subgroup of order r. The points of the verification key are always checked in full.
    threads : int, optional

    Raises
    ------
    FormatError
        Malformed; `section` is what bellman calls the list (``"b_g1"``), `index` the point.
    """
    if check not in _LEVEL:
        raise ValueError(f"check must be one of {', '.join(_LEVEL)}, not {check!r}")
    threads = cpu.num_threads(threads)
    with Source.open(src, "bellman parameters") as source:
        points, at = _read_points(source)
        # every count is known to fit before the first big array is made
        counts, offsets = {}, {}
        for field, section, group in (_IC, *_LISTS):
            counts[field], offsets[field], at = _count(source, section, group, at)
        _check_counts(source, counts)
        arrays = {f: np.empty((counts[f], group.limbs), np.uint64) for f, _, group in (_IC, *_LISTS)}
        with source.reading([(arrays[f], offsets[f]) for f in arrays], threads=threads):
            pass
        for field, section, group in (_IC, *_LISTS):
            level = "subgroup" if field == "ic" else _LEVEL[check]
            _decode(source, section, group, arrays[field], level, threads)
    return BellmanKey(BLS12_381, **points, **arrays)


def read_bellman_vk(src: Any) -> VerifyingKeyRecord:
    """Read the verification key: a ``.vk`` file, or the beginning of a parameter file.

    Raises
    ------
    FormatError
        Malformed; names the point.
    """
    with Source.open(src, "bellman verification key") as source:
        points, at = _read_points(source)
        _, section, group = _IC
        count, offset, _ = _count(source, section, group, at)
        if count == 0:
            raise _no_ic(source)
        ic = np.empty((count, group.limbs), np.uint64)
        source.read_into(ic, offset)
        _decode(source, section, group, ic, "subgroup", None)
    kept = {f: points[f] for f in ("alpha_1", "beta_2", "gamma_2", "delta_2")}
    return VerifyingKeyRecord(BLS12_381, **kept, ic=ic)


def _read_points(source: Source) -> tuple[dict[str, Words], int]:
    at, points = 0, {}
    for field, section, group in _POINTS:
        if source.size - at < group.nbytes:
            what = "the file is empty" if source.size == 0 else f"the file ends after {source.size} bytes"
            raise FormatError(f"{what}, before the end of the point", path=source.name, section=section)
        points[field] = np.empty((1, group.limbs), np.uint64)
        source.read_into(points[field], at)
        at += group.nbytes
        _decode(source, section, group, points[field], "subgroup", 1)
    return points, at


def _count(source: Source, section: str, group: Group, at: int) -> tuple[int, int, int]:
    # the count of a list, where its points begin, where they end
    if source.size - at < 4:
        raise FormatError("the file ends before the count", path=source.name, section=section)
    count, at = int.from_bytes(source.read(at, 4), "big"), at + 4
    needed, left = count * group.nbytes, source.size - at
    if needed > left:
        raise FormatError(
            f"file truncated: {count} points need {needed} bytes, only {left} remain",
            path=source.name,
            section=section,
        )
    return count, at, at + needed


def _check_counts(source: Source, counts: dict[str, int]) -> None:
    def error(section: str, reason: str) -> FormatError:
        return FormatError(reason, path=source.name, section=section)

    n_inputs, n_vars, domain_size = counts["ic"], counts["ic"] + counts["l"], counts["h"] + 1
    if n_inputs == 0:
        raise _no_ic(source)
    if domain_size & (domain_size - 1):
        raise error("h", f"{counts['h']} points, expected one less than a power of two")
    if domain_size > 1 << BLS12_381.fr.two_adicity:
        raise error(
            "h", f"domain size {domain_size} is beyond 2^{BLS12_381.fr.two_adicity}, the largest there is"
        )
    if not n_inputs <= counts["a"] <= n_vars:
        raise error("a", f"{counts['a']} points, expected from {n_inputs} inputs to all {n_vars} wires")
    if counts["b_1"] > n_vars:
        raise error("b_g1", f"{counts['b_1']} points, expected at most one for each of {n_vars} wires")
    if counts["b_2"] != counts["b_1"]:
        raise error("b_g2", f"{counts['b_2']} points, expected as many as in b_g1 = {counts['b_1']}")


def _no_ic(source: Source) -> FormatError:
    return FormatError(
        "no points: there is at least that of the constant one", path=source.name, section="ic"
    )


def _decode(
    source: Source, section: str, group: Group, points: Words, level: Level, threads: int | None
) -> None:
    bad: tuple[int, str] | None = cpu.decode_points(group, points, threads=threads)
    if bad is None and level != "range":
        bad = cpu.first_bad_point(group, points, level, threads=threads)
    if bad is not None:
        index, reason = bad[0], _FAULTS[bad[1]]
        if section in {s for _, s, _ in _POINTS}:
            raise FormatError(reason, path=source.name, section=section)
        raise FormatError(f"point {index}: {reason}", path=source.name, section=section, index=index)


def write_bellman(record: BellmanKey, dst: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a parameter file.

    Parameters
    ----------
    record : BellmanKey
    dst : path or binary file object
        A path is replaced at once or not at all.
    """
    with replacing(dst) as file:
        for field, _, group in _POINTS:
            file.write(cpu.encode_points(group, getattr(record, field)).data)
        for field, _, group in (_IC, *_LISTS):
            for piece in _encoded(group, getattr(record, field)):
                file.write(piece)


def write_bellman_vk(record: BellmanKey, dst: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write the verification key alone, as `write_bellman` writes the whole; a ``.vk`` file."""
    with replacing(dst) as file:
        for field, _, group in _POINTS:
            file.write(cpu.encode_points(group, getattr(record, field)).data)
        for piece in _encoded(_G1, record.ic):
            file.write(piece)


def _encoded(group: Group, points: Words) -> Iterator[Any]:
    yield len(points).to_bytes(4, "big")
    for i in range(0, len(points), _PIECE):
        yield cpu.encode_points(group, points[i : i + _PIECE]).data

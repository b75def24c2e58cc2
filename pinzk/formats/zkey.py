# SPDX-License-Identifier: Apache-2.0
"""snarkjs proving keys (``.zkey``, Groth16)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._core import cpu
from ..curves import Curve, Group, Words
from .container import Container, Fields, SectionToWrite, field_bytes, write_container
from .source import Source
from .sparse import SparseRows, row_pieces

_VERSION, _GROTH16 = 1, 1
_PROTOCOLS = {2: "plonk", 10: "fflonk"}
_TITLES = {
    1: "protocol",
    2: "header",
    3: "IC points",
    4: "coefficients",
    5: "A points",
    6: "B1 points",
    7: "B2 points",
    8: "C points",
    9: "H points",
}
_COEFFICIENT = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("column", "<u4"), ("value", "<u8", 4)])
_PIECE = 1 << 16  # coefficients read or written at a time
Level = Literal["range", "curve", "subgroup"]
_LEVEL: dict[str, Level] = {"none": "range", "curve": "curve", "full": "subgroup"}


@dataclass(frozen=True, eq=False)
class ZkeyHeader:
    """The part of a proving key that does not grow with the circuit.

    Attributes
    ----------
    curve : Curve
    n_vars : int
        Wires, the constant one included.
    n_public : int
        Public inputs and outputs, the constant one not included.
    domain_size : int
        A power of two; rows of the matrices.
    alpha_1, beta_1, delta_1 : ndarray of uint64, shape (1, curve.g1.limbs)
    beta_2, gamma_2, delta_2 : ndarray of uint64, shape (1, curve.g2.limbs)
    ic : ndarray of uint64, shape (n_public + 1, curve.g1.limbs)
    """

    curve: Curve
    n_vars: int
    n_public: int
    domain_size: int
    alpha_1: Words
    beta_1: Words
    delta_1: Words
    beta_2: Words
    gamma_2: Words
    delta_2: Words
    ic: Words


@dataclass(frozen=True, eq=False)
class Zkey(ZkeyHeader):
    """A whole proving key. Points are affine Montgomery rows, infinity all zeros; the arrays belong to the record.

    Attributes
    ----------
    a, b_1 : ndarray of uint64, shape (n_vars, curve.g1.limbs)
    b_2 : ndarray of uint64, shape (n_vars, curve.g2.limbs)
    c : ndarray of uint64, shape (n_vars - n_public - 1, curve.g1.limbs)
        Private wires only: row i belongs to wire n_public + 1 + i.
    h : ndarray of uint64, shape (domain_size, curve.g1.limbs)
        In the Lagrange basis of the odd coset of the domain.
    rows_a, rows_b : SparseRows
        The matrices A and B, domain_size rows each, the public rows included. There is no C.
    """

    a: Words
    b_1: Words
    b_2: Words
    c: Words
    h: Words
    rows_a: SparseRows
    rows_b: SparseRows


def read_zkey(src: Any, *, check: str = "curve", threads: int | None = None) -> Zkey:
    """Read a proving key.

    Parameters
    ----------
    src : path, bytes, buffer or binary file object
    check : {"none", "curve", "full"}
        ``none``: sizes, counts, indices, and that values and coordinates are below their moduli. ``curve``: also that every
        point is on its curve. ``full``: also that it is in the subgroup of order r. The points of the verification key
        (header and IC) are always checked in full.
    threads : int, optional

    Raises
    ------
    FormatError
        The key is malformed; names the section and the index.
    """
    if check not in _LEVEL:
        raise ValueError(f"check must be one of {', '.join(_LEVEL)}, not {check!r}")
    threads = cpu.num_threads(threads)
    with Source.open(src, "zkey") as source:
        file = Container(source, "zkey", _VERSION, _TITLES)
        header = _read_header(file)
        g1, g2 = header.curve.g1, header.curve.g2
        n_private = header.n_vars - header.n_public - 1
        points = {
            "a": (5, g1, header.n_vars, "nVars"),
            "b_1": (6, g1, header.n_vars, "nVars"),
            "b_2": (7, g2, header.n_vars, "nVars"),
            "c": (8, g1, n_private, "nVars - nPublic - 1"),
            "h": (9, g1, header.domain_size, "the domain size"),
        }
        # all sizes are known to be right before the first array is made
        sections = {
            name: file.rows(number, count, group.limbs, "points", expected)
            for name, (number, group, count, expected) in points.items()
        }
        n_coefficients = _count_coefficients(file)
        arrays = {
            name: np.empty((count, group.limbs), np.uint64) for name, (_, group, count, _) in points.items()
        }
        with source.reading([(arrays[name], sections[name].offset) for name in points], threads=threads):
            rows_a, rows_b = _read_coefficients(file, header, n_coefficients)
        for name, (number, group, _, _) in points.items():
            _check_points(file, number, group, arrays[name], _LEVEL[check], threads)
    return Zkey(**vars(header), rows_a=rows_a, rows_b=rows_b, **arrays)  # type: ignore[arg-type]


def read_zkey_header(src: Any) -> ZkeyHeader:
    """Read and check only the header and the IC points: what makes the verification key.

    Raises
    ------
    FormatError
        Malformed.
    """
    with Source.open(src, "zkey") as source:
        return _read_header(Container(source, "zkey", _VERSION, _TITLES))


def _read_header(file: Container) -> ZkeyHeader:
    protocol = Fields(file, 1)
    number = protocol.u32()
    if number != _GROTH16:
        name = f" ({_PROTOCOLS[number]})" if number in _PROTOCOLS else ""
        raise protocol.error(f"zkey protocol id {number}{name} is not groth16")
    protocol.end()

    f = Fields(file, 2)
    curve = f.curve("base", lambda c: c.fp)
    if f.curve("scalar", lambda c: c.fr) is not curve:
        raise f.error(f"the scalar field is not the one of {curve.name}, as the base field says")
    n_vars, n_public, domain_size = f.u32(), f.u32(), f.u32()
    if n_public >= n_vars:
        raise f.error(f"nPublic {n_public} >= nVars {n_vars}")
    if domain_size == 0 or domain_size & (domain_size - 1):
        raise f.error(f"domain size {domain_size} is not a power of two")
    log_n, two_adicity = domain_size.bit_length() - 1, curve.fr.two_adicity
    if log_n >= two_adicity:  # the odd coset takes a root of unity of twice the order
        limit = f"2^{two_adicity - 1}, the largest for {curve.name} (two-adicity {two_adicity})"
        raise f.error(f"domain size 2^{log_n} is beyond {limit}")
    points = {}
    for name in ("alpha_1", "beta_1", "beta_2", "gamma_2", "delta_1", "delta_2"):
        group = curve.g1 if name.endswith("_1") else curve.g2
        points[name] = f.words(group.limbs)
    f.end()
    for name, point in points.items():
        if not point.any():
            raise f.error(f"{name} is the point at infinity")
        fault = cpu.first_bad_point(
            curve.g1 if name.endswith("_1") else curve.g2, point, "subgroup", threads=1
        )
        if fault is not None:
            raise f.error(f"{name}: {_FAULTS[fault[1]]}")

    section = file.rows(3, n_public + 1, curve.g1.limbs, "points", "nPublic + 1")
    ic = np.empty((n_public + 1, curve.g1.limbs), dtype=np.uint64)
    file.source.read_into(ic, section.offset)
    at_infinity = ~ic.any(axis=1)
    if at_infinity.any():
        i = int(at_infinity.argmax())
        raise file.error(f"point {i} is the point at infinity", 3, i)
    _check_points(file, 3, curve.g1, ic, "subgroup", None)
    return ZkeyHeader(curve, n_vars, n_public, domain_size, ic=ic, **points)


_FAULTS = {
    "coordinate": "a coordinate is not reduced mod q",
    "curve": "the point is not on the curve",
    "subgroup": "the point is on the curve but not in the subgroup of order r",
}


def _check_points(
    file: Container, number: int, group: Group, points: Words, level: Level, threads: int | None
) -> None:
    bad = cpu.first_bad_point(group, points, level, threads=threads)
    if bad is not None:
        raise file.error(f"point {bad[0]}: {_FAULTS[bad[1]]}", number, bad[0])


def _count_coefficients(file: Container) -> int:
    section = file.section(4)
    if section.size < 4:
        raise file.error(f"{section.size} bytes, too short for the count", 4)
    count = int.from_bytes(file.source.read(section.offset, 4), "little")
    needed = 4 + count * _COEFFICIENT.itemsize
    if section.size != needed:
        raise file.error(f"{count} coefficients are {needed} bytes, the section has {section.size}", 4)
    return count


def _read_coefficients(file: Container, header: ZkeyHeader, count: int) -> tuple[SparseRows, SparseRows]:
    indptr = [np.zeros(header.domain_size + 1, dtype=np.uint64) for _ in range(2)]
    _scan(file, header, count, [(p,) for p in indptr])
    for p in indptr:
        np.cumsum(p, out=p)
    rows = [SparseRows.room_for(p) for p in indptr]
    cursors = [r.indptr[:-1].copy() for r in rows]
    _scan(
        file, header, count, [(r.indptr, c, r.indices, r.values) for r, c in zip(rows, cursors, strict=True)]
    )
    return rows[0], rows[1]


def _scan(file: Container, header: ZkeyHeader, count: int, targets: list[tuple[NDArray[Any], ...]]) -> None:
    offset, piece = file.section(4).offset + 4, np.empty(min(_PIECE, count), dtype=_COEFFICIENT)
    for start in range(0, count, _PIECE):
        records = piece[: min(_PIECE, count - start)]
        file.source.read_into(records, offset + start * _COEFFICIENT.itemsize)
        bad = cpu.scan_coefficients(
            header.curve.fr, records.view(np.uint8), header.domain_size, header.n_vars, targets
        )
        if bad is not None:
            raise file.error(
                _coefficient_fault(header, start + bad[0], records[bad[0]], bad[1]), 4, start + bad[0]
            )


def _coefficient_fault(header: ZkeyHeader, i: int, record: Any, fault: str) -> str:
    reasons = {
        "matrix": f"matrix id {record['matrix']} (expected 0 = A or 1 = B)",
        "row": f"constraint index {record['row']:#x} >= domain size {header.domain_size}",
        "column": f"signal index {record['column']} >= nVars {header.n_vars}",
        "value": "value is not reduced mod r",
        "changed": "the file changed while it was read",
    }
    return f"coefficient {i}: {reasons[fault]}"


def write_zkey(record: Zkey, dst: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a proving key as snarkjs does, sections 1 to 10 in order, with an empty record of contributions.

    Parameters
    ----------
    record : Zkey
    dst : path or binary file object
        A path is replaced at once or not at all.
    """
    points = (record.alpha_1, record.beta_1, record.beta_2, record.gamma_2, record.delta_1, record.delta_2)
    header = [
        field_bytes(record.curve.fp),
        field_bytes(record.curve.fr),
        *(n.to_bytes(4, "little") for n in (record.n_vars, record.n_public, record.domain_size)),
        *(p.tobytes() for p in points),
    ]
    count = record.rows_a.nnz + record.rows_b.nnz
    coefficients = 4 + count * _COEFFICIENT.itemsize
    sections: list[SectionToWrite] = [
        (1, 4, [_GROTH16.to_bytes(4, "little")]),
        (2, sum(map(len, header)), header),
        (3, record.ic.nbytes, [record.ic]),
        (4, coefficients, _coefficients(record, count)),
        *(
            (i, p.nbytes, [p])
            for i, p in enumerate((record.a, record.b_1, record.b_2, record.c, record.h), 5)
        ),
        (10, 68, [bytes(68)]),
    ]
    write_container(dst, "zkey", _VERSION, sections)


def _coefficients(record: Zkey, count: int) -> Iterator[Any]:
    # row by row, A before B
    yield count.to_bytes(4, "little")
    matrices = (record.rows_a, record.rows_b)
    offsets = record.rows_a.indptr + record.rows_b.indptr
    for first, last in row_pieces(offsets, _PIECE):
        piece = np.empty(int(offsets[last] - offsets[first]), dtype=_COEFFICIENT)
        for matrix, rows in enumerate(matrices):
            row, begin, end = rows.entries(first, last)
            # an entry comes after those of its own matrix before it and those of the other one in earlier rows; B's, after
            # A's of the same row too
            other = matrices[1 - matrix].indptr[row + matrix]
            at = np.arange(begin, end, dtype=np.uint64) + other - offsets[first]
            for name, column in (("matrix", matrix), ("row", row), ("column", rows.indices[begin:end])):
                piece[name][at] = column
            piece["value"][at] = rows.values[begin:end]
        yield piece

# SPDX-License-Identifier: Apache-2.0
"""circom constraint systems (``.r1cs``)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .._core import cpu
from ..curves import Curve
from .container import Container, Fields, SectionToWrite, field_bytes, write_container
from .source import Source
from .sparse import SparseRows, row_pieces

_VERSION = 1
_TITLES = {1: "header", 2: "constraints", 3: "labels"}
_TERM_WORDS = 9  # of 32 bits: a wire, a coefficient
_PIECE = 4 << 20  # bytes of constraints read at a time
_MATRICES = "ABC"


@dataclass(frozen=True, eq=False)
class R1csFile:
    """Constraints A w o B w = C w.

    Attributes
    ----------
    curve : Curve
    n_wires : int
        Wires, the constant one included.
    n_pub_out, n_pub_in, n_prv_in : int
        Public outputs, public inputs, private inputs: the wires after the constant one, in this order.
    n_constraints : int
    a, b, c : SparseRows
        n_constraints rows each.
    """

    curve: Curve
    n_wires: int
    n_pub_out: int
    n_pub_in: int
    n_prv_in: int
    n_constraints: int
    a: SparseRows
    b: SparseRows
    c: SparseRows


def read_r1cs(src: Any, *, threads: int | None = None) -> R1csFile:
    """Read a constraint system. Of the labels only the number is looked at; custom gates are skipped.

    Parameters
    ----------
    src : path, bytes, buffer or binary file object
    threads : int, optional

    Raises
    ------
    FormatError
        Malformed; names the constraint.
    """
    threads = cpu.num_threads(threads)
    with Source.open(src, "r1cs") as source:
        file = Container(source, "r1cs", _VERSION, _TITLES)
        f = Fields(file, 1)
        curve = f.curve("scalar", lambda c: c.fr)
        n_wires, n_pub_out, n_pub_in, n_prv_in = f.u32(), f.u32(), f.u32(), f.u32()
        f.u64()  # labels of the source program
        n_constraints = f.u32()
        f.end()
        if 1 + n_pub_out + n_pub_in + n_prv_in > n_wires:
            raise f.error(f"1 + {n_pub_out} outputs + {n_pub_in + n_prv_in} inputs > nWires {n_wires}")
        file.rows(3, n_wires, 1, "labels", "nWires")  # not read, but it bounds the number of wires
        if n_constraints * 12 > file.section(2).size:
            size = file.section(2).size
            raise file.error(
                f"{n_constraints} constraints take at least {12 * n_constraints} bytes, it has {size}", 2
            )
        indptr = [np.zeros(n_constraints + 1, dtype=np.uint64) for _ in _MATRICES]
        _scan(file, curve, n_constraints, n_wires, [(p,) for p in indptr])
        matrices = [SparseRows.room_for(p) for p in indptr]
        _scan(
            file,
            curve,
            n_constraints,
            n_wires,
            [(m.indptr, np.zeros(1, dtype=np.uint64), m.indices, m.values) for m in matrices],
        )
    for m in matrices:  # c -> c R^2
        cpu.to_montgomery(curve.fr, m.values, m.values, threads=threads)
        cpu.to_montgomery(curve.fr, m.values, m.values, threads=threads)
    return R1csFile(curve, n_wires, n_pub_out, n_pub_in, n_prv_in, n_constraints, *matrices)


def _scan(
    file: Container, curve: Curve, n_constraints: int, n_wires: int, targets: list[tuple[NDArray[Any], ...]]
) -> None:
    section, walk = file.section(2), np.zeros(3, dtype=np.uint64)
    buffer, at = np.empty(min(_PIECE, section.size), dtype=np.uint8), 0
    while True:
        piece = buffer[: section.size - at]
        file.source.read_into(piece, section.offset + at)
        taken, fault = cpu.scan_constraints(curve.fr, piece, n_constraints, n_wires, targets, walk)
        at += taken
        constraint, matrix = divmod(int(walk[0]), 3)
        if fault is not None:
            reason = {
                "column": f"wire index >= nWires {n_wires}",
                "value": "coefficient is not reduced mod r",
                "changed": "the file changed while it was read",
            }[fault]
            raise file.error(f"constraint {constraint}, {_MATRICES[matrix]}: {reason}", 2, constraint)
        if constraint == n_constraints:
            break
        if taken == 0:
            reason = f"{section.size - at} bytes left, more are needed for {_MATRICES[matrix]}"
            raise file.error(f"constraint {constraint} of {n_constraints}: {reason}", 2, constraint)
    if at != section.size:
        raise file.error(f"{section.size - at} bytes after the last of {n_constraints} constraints", 2)


def write_r1cs(record: R1csFile, dst: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a constraint system; wires are labelled by their own numbers.

    Parameters
    ----------
    record : R1csFile
    dst : path or binary file object
        A path is replaced at once or not at all.
    """
    counts = (record.n_wires, record.n_pub_out, record.n_pub_in, record.n_prv_in)
    header = [
        field_bytes(record.curve.fr),
        *(n.to_bytes(4, "little") for n in counts),
        record.n_wires.to_bytes(8, "little"),  # labels
        record.n_constraints.to_bytes(4, "little"),
    ]
    size = sum(4 * m.n_rows + 4 * _TERM_WORDS * m.nnz for m in (record.a, record.b, record.c))
    sections: list[SectionToWrite] = [
        (2, size, _constraints(record)),
        (1, sum(map(len, header)), header),
        (3, 8 * record.n_wires, [np.arange(record.n_wires, dtype="<u8")]),
    ]
    write_container(dst, "r1cs", _VERSION, sections)


def _constraints(record: R1csFile) -> Iterator[Any]:
    matrices, fr = (record.a, record.b, record.c), record.curve.fr
    # in 32-bit words: a count for each combination, nine for each term
    offsets = 3 * np.arange(record.n_constraints + 1, dtype=np.uint64)
    for m in matrices:
        offsets += _TERM_WORDS * m.indptr
    for first, last in row_pieces(offsets, _PIECE // 4):
        piece = np.empty(int(offsets[last] - offsets[first]), dtype="<u4")
        at = (offsets[first:last] - offsets[first]).astype(
            np.int64
        )  # where the combination of each row begins
        for m in matrices:
            row, begin, end = m.entries(first, last)
            counts = np.diff(m.indptr[first : last + 1]).astype(np.int64)
            piece[at] = counts
            rank = np.arange(begin, end) - m.indptr[row].astype(np.int64)
            term = at[row - first] + 1 + _TERM_WORDS * rank
            values = cpu.from_montgomery(fr, m.values[begin:end])
            cpu.from_montgomery(fr, values, values)
            piece[term] = m.indices[begin:end]
            piece[term[:, None] + np.arange(1, _TERM_WORDS)] = values.view("<u4")
            at += 1 + _TERM_WORDS * counts
        yield piece

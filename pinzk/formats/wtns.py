# SPDX-License-Identifier: Apache-2.0
"""snarkjs witnesses (``.wtns``)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from .._core import cpu
from ..curves import Curve, Words
from ..errors import WitnessError
from .container import Container, Fields, field_bytes, write_container
from .source import Source

_VERSION = 2
_TITLES = {1: "header", 2: "values"}


@dataclass(frozen=True, eq=False)
class Wtns:
    """A witness.

    Attributes
    ----------
    curve : Curve
    canonical : ndarray of uint64, shape (n, 4)
        The constant one, outputs, public inputs, private wires; canonical, as in the file.
    """

    curve: Curve
    canonical: Words

    def __repr__(self) -> str:
        return f"<Wtns {self.curve.name}, {len(self.canonical)} values>"


def read_wtns(src: Any, *, threads: int | None = None) -> Wtns:
    """Read a witness.

    Parameters
    ----------
    src : path, bytes, buffer or binary file object
    threads : int, optional

    Raises
    ------
    FormatError
        The file is malformed.
    WitnessError
        Value 0 is not one, or a value is not reduced mod r.
    """
    threads = cpu.num_threads(threads)
    with Source.open(src, "wtns") as source:
        file = Container(source, "wtns", _VERSION, _TITLES)
        f = Fields(file, 1)
        curve = f.curve("scalar", lambda c: c.fr)
        n = f.u32()
        f.end()
        size = file.section(2).size
        if size != 32 * n:
            extra = f" and {size % 32} bytes" if size % 32 else ""
            raise file.error(f"holds {size // 32} values{extra}, the header says {n}", 2)
        canonical = np.empty((n, 4), dtype=np.uint64)
        source.read_into(canonical, file.section(2).offset, threads=threads)
        check_values(curve, canonical, source.name, threads=threads)
    return Wtns(curve, canonical)


def check_values(curve: Curve, canonical: Words, name: str, *, threads: int | None = None) -> None:
    """WitnessError unless value 0 is one and every value is reduced; shows no value."""
    if len(canonical) == 0 or canonical[0].tolist() != [1, 0, 0, 0]:
        raise WitnessError(f"{name}: witness[0] is not 1", index=0)
    bad = cpu.first_unreduced(curve.fr, canonical, threads=threads)
    if bad is not None:
        raise WitnessError(f"{name}: witness[{bad}] is not reduced mod r of {curve.name}", index=bad)


def write_wtns(record: Wtns, dst: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write a witness.

    Parameters
    ----------
    record : Wtns
    dst : path or binary file object
        A path is replaced at once or not at all.
    """
    header = field_bytes(record.curve.fr) + len(record.canonical).to_bytes(4, "little")
    values = np.ascontiguousarray(record.canonical, dtype="<u8")
    write_container(dst, "wtns", _VERSION, [(1, len(header), [header]), (2, values.nbytes, [values])])

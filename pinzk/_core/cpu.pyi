# SPDX-License-Identifier: Apache-2.0
"""Types of the CPU backend; `cpu.pyx` documents each function."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pinzk.curves import Field, Group, Words

def num_threads(threads: int | None = None) -> int: ...
def to_montgomery(
    field: Field, canonical: Words, out: Words | None = None, *, threads: int | None = None
) -> Words: ...
def from_montgomery(
    field: Field, array: Words, out: Words | None = None, *, threads: int | None = None
) -> Words: ...
def first_unreduced(field: Field, array: Words, *, threads: int | None = None) -> int | None: ...
def multiply(
    field: Field, a: Words, b: Words, out: Words | None = None, *, threads: int | None = None
) -> Words: ...
def multiply_subtract(
    field: Field, a: Words, b: Words, c: Words, out: Words | None = None, *, threads: int | None = None
) -> Words: ...
def powers(field: Field, base: int, n: int, *, first: int = 1, threads: int | None = None) -> Words: ...
def invert(field: Field, array: Words, out: Words | None = None, *, threads: int | None = None) -> Words: ...
def twiddles(field: Field, root: int, n: int, *, threads: int | None = None) -> Words: ...
def dif(field: Field, data: Words, twiddles: Words, *, threads: int | None = None) -> None: ...
def dit(field: Field, data: Words, twiddles: Words, *, threads: int | None = None) -> None: ...
def bit_reverse(field: Field, data: Words, *, threads: int | None = None) -> None: ...
def first_bad_point(
    group: Group,
    points: Words,
    check: Literal["range", "curve", "subgroup"] = "curve",
    *,
    threads: int | None = None,
) -> tuple[int, Literal["coordinate", "curve", "subgroup"]] | None: ...
def msm(group: Group, bases: Words, scalars: Words, *, threads: int | None = None) -> Words: ...
def fixed_base(group: Group, base: Words, scalars: Words, *, threads: int | None = None) -> Words: ...
def generator(group: Group) -> Words: ...
def decode_points(
    group: Group, points: Words, *, threads: int | None = None
) -> tuple[int, Literal["encoding", "infinity", "coordinate", "curve"]] | None: ...
def encode_points(
    group: Group, points: Words, out: Words | None = None, *, threads: int | None = None
) -> Words: ...
def sparse_rows(
    field: Field,
    indptr: NDArray[np.uint64],
    indices: NDArray[np.uint32],
    values: Words,
    witness: Words,
    out: Words | None = None,
    *,
    threads: int | None = None,
) -> Words: ...
def scan_coefficients(
    field: Field,
    records: NDArray[np.uint8],
    rows: int,
    columns: int,
    targets: Sequence[tuple[NDArray[Any], ...]],
) -> tuple[int, str] | None: ...
def scan_constraints(
    field: Field,
    piece: NDArray[np.uint8],
    rows: int,
    columns: int,
    targets: Sequence[tuple[NDArray[Any], ...]],
    walk: NDArray[np.uint64],
) -> tuple[int, str | None]: ...

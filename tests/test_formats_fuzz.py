# SPDX-License-Identifier: Apache-2.0
"""The readers over damaged bytes: a typed error, or a record that keeps its promises; never anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import DATA
from hypothesis import given, settings
from hypothesis import strategies as st

from pinzk._core import cpu
from pinzk.errors import FormatError, WitnessError
from pinzk.formats.r1cs import R1csFile, read_r1cs
from pinzk.formats.sparse import SparseRows
from pinzk.formats.wtns import Wtns, read_wtns
from pinzk.formats.zkey import Zkey, read_zkey

SEEDS = {
    name: [(DATA / folder / name).read_bytes() for folder in ("mult3_bn254", "mult3_bls12381")]
    for name in ("circuit.zkey", "witness.wtns", "circuit.r1cs")
}
EDGES = [0, 1, 2, 7, 8, 9, 31, 32, 48, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF]


@st.composite
def damaged(draw: Callable[[Any], Any], name: str) -> bytes:
    """A good file after a few accidents: bits flipped, numbers set, pieces cut, doubled, or taken from another file."""
    data = bytearray(draw(st.sampled_from(SEEDS[name])))
    foreign = draw(st.sampled_from([seed for seeds in SEEDS.values() for seed in seeds]))
    for _ in range(draw(st.integers(1, 4))):
        # headers and the section table are a small part of the bytes, and most of the decisions
        at = min(draw(st.one_of(st.integers(0, 120), st.integers(0, len(data)))), len(data))
        size = draw(st.one_of(st.sampled_from([1, 4, 8, 12, 32, 44, 64]), st.integers(0, 400)))
        accident = draw(
            st.sampled_from(["flip", "u32", "u64", "cut", "remove", "double", "splice", "insert"])
        )
        if accident == "flip" and at < len(data):
            data[at] ^= draw(st.integers(1, 255))
        elif accident == "u32":
            data[at : at + 4] = draw(st.sampled_from(EDGES)).to_bytes(4, "little")
        elif accident == "u64":
            data[at : at + 8] = draw(st.integers(0, (1 << 64) - 1)).to_bytes(8, "little")
        elif accident == "cut":
            del data[at:]
        elif accident == "remove":
            del data[at : at + size]
        elif accident == "double":
            data[at:at] = data[at : at + size]
        elif accident == "splice":
            start = draw(st.integers(0, len(foreign)))
            data[at : at + size] = foreign[start : start + size]
        else:
            data[at:at] = draw(st.binary(max_size=64))
    return bytes(data)


def check_rows(rows: SparseRows, n_rows: int, n_columns: int, field: Any) -> None:
    assert rows.n_rows == n_rows
    assert rows.indptr[0] == 0
    assert (np.diff(rows.indptr.astype(np.int64)) >= 0).all()
    assert rows.indptr[-1] == len(rows.indices) == len(rows.values)
    assert (rows.indices < n_columns).all()
    assert cpu.first_unreduced(field, rows.values, threads=1) is None


def check_zkey(key: Zkey, level: Any) -> None:
    n, fr = key.n_vars, key.curve.fr
    assert key.n_public < n
    assert key.domain_size.bit_count() == 1
    counts = {
        "ic": key.n_public + 1,
        "a": n,
        "b_1": n,
        "b_2": n,
        "c": n - key.n_public - 1,
        "h": key.domain_size,
    }
    for name, count in counts.items():
        group = key.curve.g2 if name == "b_2" else key.curve.g1
        points = getattr(key, name)
        assert points.shape == (count, group.limbs)
        assert cpu.first_bad_point(group, points, level, threads=1) is None
    for rows in (key.rows_a, key.rows_b):
        check_rows(rows, key.domain_size, n, fr)


def check_wtns(witness: Wtns) -> None:
    assert witness.canonical[0].tolist() == [1, 0, 0, 0]
    assert cpu.first_unreduced(witness.curve.fr, witness.canonical, threads=1) is None


def check_r1cs(system: R1csFile) -> None:
    assert 1 + system.n_pub_out + system.n_pub_in + system.n_prv_in <= system.n_wires
    for rows in (system.a, system.b, system.c):
        check_rows(rows, system.n_constraints, system.n_wires, system.curve.fr)


@settings(max_examples=1000)
@given(data=damaged("circuit.zkey"), check=st.sampled_from([("none", "range"), ("curve", "curve")]))
def test_damaged_zkey(data: bytes, check: tuple[str, str]) -> None:
    try:
        key = read_zkey(data, check=check[0], threads=1)
    except FormatError:
        return
    check_zkey(key, check[1])


@settings(max_examples=500)
@given(data=damaged("witness.wtns"))
def test_damaged_wtns(data: bytes) -> None:
    try:
        witness = read_wtns(data, threads=1)
    except (FormatError, WitnessError):
        return
    check_wtns(witness)


@settings(max_examples=1000)
@given(data=damaged("circuit.r1cs"))
def test_damaged_r1cs(data: bytes) -> None:
    try:
        system = read_r1cs(data, threads=1)
    except FormatError:
        return
    check_r1cs(system)


@pytest.mark.parametrize(
    ("name", "read"), [("circuit.zkey", read_zkey), ("witness.wtns", read_wtns), ("circuit.r1cs", read_r1cs)]
)
def test_every_cut_is_refused(name: str, read: Callable[[bytes], Any]) -> None:
    # section 10 of a key is not looked at, but the table still says that it is there
    for seed in SEEDS[name]:
        for size in range(len(seed)):
            with pytest.raises(FormatError):
                read(seed[:size])


@settings(max_examples=300)
@given(data=st.binary(max_size=400))
def test_noise_is_refused(data: bytes) -> None:
    for magic, read in ((b"zkey", read_zkey), (b"wtns", read_wtns), (b"r1cs", read_r1cs)):
        for content in (
            data,
            magic + data,
            magic + (2 if magic == b"wtns" else 1).to_bytes(4, "little") + data,
        ):
            with pytest.raises(FormatError):
                read(content)

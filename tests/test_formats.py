# SPDX-License-Identifier: Apache-2.0
"""Readers and writers of zkey, wtns and r1cs: real files, round trips, every kind of input, memory that is owned."""

from __future__ import annotations

import gzip
import io
import mmap
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import DATA, SHARED, ZKEY_CASES, Case
from malformed import File

from pinzk.curves import BLS12_381, BN254, Curve, Words
from pinzk.errors import FormatError
from pinzk.formats.container import write_container
from pinzk.formats.r1cs import R1csFile, read_r1cs, write_r1cs
from pinzk.formats.sparse import SparseRows
from pinzk.formats.wtns import read_wtns, write_wtns
from pinzk.formats.zkey import Zkey, read_zkey, read_zkey_header, write_zkey

R1CS = sorted({p.parent.name: p for p in [*SHARED.glob("*/*.r1cs"), *DATA.glob("*/*.r1cs")]}.values())
MULT3 = DATA / "mult3_bn254"


def packed(write: Callable[[Any, io.BytesIO], None], record: Any) -> bytes:
    out = io.BytesIO()
    write(record, out)
    return out.getvalue()


def arrays_of(record: Any) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    for value in vars(record).values():
        if isinstance(value, SparseRows):
            out += [value.indptr, value.indices, value.values]
        elif isinstance(value, np.ndarray):
            out.append(value)
    return out


def assert_same(a: Any, b: Any) -> None:
    for x, y in zip(arrays_of(a), arrays_of(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


# ---- real files ----


@pytest.mark.parametrize("case", ZKEY_CASES, ids=str)
def test_zkey_comes_back_as_it_was(case: Case) -> None:
    record = read_zkey(case.zkey, check="full")
    assert record.curve.name == case.curve_name
    written = File.unpack(packed(write_zkey, record))
    original = File.unpack(case.zkey.read_bytes())
    assert [n for n, _ in written.sections] == list(range(1, 11))
    for number in range(1, 10):
        assert written[number] == original[number]
    assert_same(read_zkey(written.pack()), record)


@pytest.mark.parametrize("case", ZKEY_CASES, ids=str)
def test_wtns_comes_back_as_it_was(case: Case) -> None:
    record = read_wtns(case.wtns)
    assert packed(write_wtns, record) == case.wtns.read_bytes()
    public = [int(x) for x in case.json("public.json")]
    assert record.curve.fr.decode_canonical(record.canonical[1 : 1 + len(public)]) == public


@pytest.mark.parametrize("path", R1CS, ids=lambda p: p.parent.name)
def test_r1cs_comes_back_as_it_was(path: Path) -> None:
    record = read_r1cs(path)
    written, original = File.unpack(packed(write_r1cs, record)), File.unpack(path.read_bytes())
    assert written[2] == original[2]
    assert written[1][:52] == original[1][:52]  # then the number of labels, which are not kept
    assert written[1][60:] == original[1][60:]
    assert_same(read_r1cs(written.pack()), record)


@pytest.mark.parametrize("path", R1CS, ids=lambda p: p.parent.name)
def test_r1cs_is_what_the_key_holds(path: Path) -> None:
    # A and B of the key are those of the r1cs, then one row for each public wire
    if not (path.parent / "circuit.zkey").exists():
        pytest.skip("no zkey beside it")
    r1cs, key = read_r1cs(path), read_zkey(path.parent / "circuit.zkey")
    n, k = r1cs.n_constraints, r1cs.n_pub_out + r1cs.n_pub_in + 1
    assert (r1cs.n_wires, k - 1) == (key.n_vars, key.n_public)
    for ours, theirs, extra in ((key.rows_a, r1cs.a, k), (key.rows_b, r1cs.b, 0)):
        np.testing.assert_array_equal(ours.indptr[: n + 1], theirs.indptr)
        assert ours.nnz == theirs.nnz + extra
        np.testing.assert_array_equal(ours.indices[: theirs.nnz], theirs.indices)
        np.testing.assert_array_equal(ours.values[: theirs.nnz], theirs.values)


@pytest.mark.parametrize("case", ZKEY_CASES, ids=str)
def test_header_alone(case: Case) -> None:
    header, record = read_zkey_header(case.zkey), read_zkey(case.zkey, check="none")
    for name, value in vars(header).items():
        np.testing.assert_array_equal(value, getattr(record, name))


# ---- the mathematics of what is stored ----


def sparse(curve: Curve, rows: list[list[tuple[int, int]]]) -> SparseRows:
    lengths = np.array([0, *map(len, rows)], dtype=np.uint64)
    entries = [e for row in rows for e in row]
    twice = curve.fr.encode(curve.fr.decode_canonical(curve.fr.encode([c for _, c in entries])))
    return SparseRows(np.cumsum(lengths), np.array([i for i, _ in entries], dtype=np.uint32), twice)


def some_zkey(rows_a: SparseRows, rows_b: SparseRows, **changes: Words) -> Zkey:
    record = read_zkey(MULT3 / "circuit.zkey")
    return replace(record, rows_a=rows_a, rows_b=rows_b, **changes)  # type: ignore[arg-type]


def test_rows_in_any_order_are_gathered_in_file_order() -> None:
    rng, r = np.random.default_rng(5), BN254.fr.modulus
    rows: list[list[list[tuple[int, int]]]] = [[[] for _ in range(8)] for _ in range(2)]
    section = bytearray(struct.pack("<I", 500))
    for i in range(500):
        m, row, wire = int(rng.integers(2)), int(rng.integers(8)), int(rng.integers(8))
        value = (i * i + 1) << 128
        rows[m][row].append((wire, value))
        section += struct.pack("<III", m, row, wire) + (value * (1 << 512) % r).to_bytes(32, "little")
    file = File.unpack((MULT3 / "circuit.zkey").read_bytes())
    file[4][:] = section
    record = read_zkey(file.pack())
    for found, wanted in zip((record.rows_a, record.rows_b), rows, strict=True):
        np.testing.assert_array_equal(found.indptr, np.cumsum([0, *map(len, wanted)]))
        flat = [entry for row in wanted for entry in row]
        assert found.indices.tolist() == [wire for wire, _ in flat]
        once = BN254.fr.decode(found.values)  # c R as an int
        assert [v * pow(1 << 256, -1, r) % r for v in once] == [v for _, v in flat]


@pytest.mark.parametrize("seed", range(3))
def test_big_sections_in_several_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # pieces of a few records, so that every boundary is met
    monkeypatch.setattr("pinzk.formats.zkey._PIECE", 7)
    monkeypatch.setattr("pinzk.formats.r1cs._PIECE", 97)
    monkeypatch.setattr("pinzk.formats.source._PIECE", 129)
    rng = np.random.default_rng(seed)

    def some(n: int) -> SparseRows:
        rows = [[(int(w), int(w) * 77 + 1) for w in rng.integers(0, 8, rng.integers(0, 9))] for _ in range(n)]
        return sparse(BN254, rows)

    key = some_zkey(some(8), some(8))
    assert_same(read_zkey(packed(write_zkey, key)), key)
    system = R1csFile(BN254, 8, 1, 1, 1, 40, some(40), some(40), some(40))
    assert_same(read_r1cs(packed(write_r1cs, system)), system)


def test_empty_matrices_and_no_constraints() -> None:
    empty = sparse(BN254, [[] for _ in range(8)])
    key = some_zkey(empty, empty)
    assert_same(read_zkey(packed(write_zkey, key)), key)
    none = sparse(BN254, [])
    system = R1csFile(BN254, 1, 0, 0, 0, 0, none, none, none)
    assert_same(read_r1cs(packed(write_r1cs, system)), system)


@pytest.mark.parametrize("name", ["a", "b_1", "b_2", "c", "h"])
@pytest.mark.parametrize("check", ["none", "curve", "full"])
def test_infinity_anywhere_in_the_queries(name: str, check: str) -> None:
    record = read_zkey(MULT3 / "circuit.zkey")
    points = getattr(record, name).copy()
    points[::2] = 0
    key = some_zkey(record.rows_a, record.rows_b, **{name: points})
    assert_same(read_zkey(packed(write_zkey, key), check=check), key)


def test_check_is_one_of_three() -> None:
    with pytest.raises(ValueError, match="none, curve, full"):
        read_zkey(MULT3 / "circuit.zkey", check="some")


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_change_nothing(threads: int) -> None:
    path = DATA / "merkle20_mimc_bls12381" / "circuit.zkey"
    assert_same(read_zkey(path, threads=threads), read_zkey(path))


# ---- r1cs, malformed ----


def r1cs_with(change: Callable[[File], object]) -> bytes:
    file = File.unpack((MULT3 / "circuit.r1cs").read_bytes())
    change(file)
    return file.pack()


def set_u32(number: int, at: int, value: int) -> Callable[[File], object]:
    return lambda f: f[number].__setitem__(slice(at, at + 4), value.to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("change", "section", "says"),
    [
        (set_u32(1, 0, 31), 1, "scalar field size of 31 bytes"),
        (set_u32(1, 4, 0), 1, "unsupported scalar field modulus"),
        (set_u32(1, 36, 0), 1, "nWires 0"),
        (set_u32(1, 36, 0xFFFFFFFF), 3, "expected nWires = 4294967295"),
        (set_u32(1, 48, 0xFFFFFFFF), 1, "inputs > nWires"),
        (set_u32(1, 60, 0xFFFFFFFF), 2, "4294967295 constraints take at least"),
        (set_u32(1, 60, 2), 2, "bytes after the last of 2 constraints"),
        (set_u32(1, 60, 4), 2, "constraint 3 of 4: 0 bytes left, more are needed for A"),
        (set_u32(2, 0, 0xFFFFFFFF), 2, "constraint 0"),
        (set_u32(2, 4, 8), 2, "constraint 0, A: wire index >= nWires 8"),
        (
            lambda f: f[2].__setitem__(slice(8, 40), b"\xff" * 32),
            2,
            "constraint 0, A: coefficient is not reduced",
        ),
        (lambda f: f[2].pop(), 2, "constraint 2 of 3"),
        (lambda f: f[2].append(0), 2, "1 bytes after the last"),
        (lambda f: f[1].append(0), 1, "65 bytes, expected 64"),
        (lambda f: f[1].pop(), 1, "63 bytes, at least 64"),
        (lambda f: f.sections.append((2, f[2])), 2, "appears twice"),
        (lambda f: f.sections.pop(), 3, "is missing"),
        (lambda f: setattr(f, "version", 2), None, "unsupported r1cs version 2"),
    ],
)
def test_malformed_r1cs(change: Callable[[File], object], section: int | None, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_r1cs(r1cs_with(change))
    assert says in str(caught.value)
    assert caught.value.section == section


def test_custom_gates_are_skipped() -> None:
    data = r1cs_with(lambda f: f.sections.extend([(4, bytearray(bytes(4))), (5, bytearray(bytes(4)))]))
    assert_same(read_r1cs(data), read_r1cs(MULT3 / "circuit.r1cs"))


# ---- inputs ----


def pipe_of(data: bytes) -> io.BufferedReader:
    reader, writer = os.pipe()

    def feed() -> None:
        with open(writer, "wb") as file:
            file.write(data)

    threading.Thread(target=feed, daemon=True).start()
    return open(reader, "rb")


def zipped(data: bytes) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(data)))


INPUTS: dict[str, Callable[[Path], Any]] = {
    "str": str,
    "Path": lambda path: path,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "array": lambda path: np.fromfile(path, dtype=np.uint8),
    "big-endian array": lambda path: np.frombuffer(path.read_bytes() + bytes(path.stat().st_size % 2), ">u2"),
    "file": lambda path: path.open("rb"),
    "unbuffered file": lambda path: path.open("rb", buffering=0),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "gzip": lambda path: zipped(path.read_bytes()),
    "pipe": lambda path: pipe_of(path.read_bytes()),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_input(kind: str) -> None:
    make, want = INPUTS[kind], DATA / "semaphore4_depth1_bn254"
    for name, read in (("circuit.zkey", read_zkey), ("witness.wtns", read_wtns)):
        src = make(want / name)
        assert_same(read(src), read(want / name))
        if hasattr(src, "close"):
            src.close()
    src = make(MULT3 / "circuit.r1cs")
    assert_same(read_r1cs(src), read_r1cs(MULT3 / "circuit.r1cs"))
    if hasattr(src, "close"):
        src.close()


def test_a_mapping_may_be_closed_after_the_load() -> None:
    with (
        (MULT3 / "circuit.zkey").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping,
    ):
        record = read_zkey(mapping)
    assert_same(record, read_zkey(MULT3 / "circuit.zkey"))


def test_a_named_pipe(tmp_path: Path) -> None:
    fifo, data = tmp_path / "key", (MULT3 / "circuit.zkey").read_bytes()
    os.mkfifo(fifo)
    feeder = threading.Thread(target=fifo.write_bytes, args=(data,))
    feeder.start()
    assert_same(read_zkey(fifo), read_zkey(data))
    feeder.join()


def test_a_file_object_is_read_from_where_it_stands(tmp_path: Path) -> None:
    data = (MULT3 / "circuit.zkey").read_bytes()
    path = tmp_path / "key"
    path.write_bytes(b"12345" + data)
    for file in (path.open("rb"), io.BytesIO(path.read_bytes()), path.open("r+b")):
        with file:
            file.seek(5)
            assert_same(read_zkey(file), read_zkey(data))


def test_bytes_after_the_last_section_are_ignored() -> None:
    data = (MULT3 / "circuit.zkey").read_bytes()
    assert_same(read_zkey(data + bytes(4096)), read_zkey(data))


@pytest.mark.parametrize("src", [None, 5, 1.5, [1, 2], object()])
def test_wrong_type_of_input(src: object) -> None:
    with pytest.raises(TypeError, match="a zkey is read from a path, bytes"):
        read_zkey(src)


def test_a_text_file_object(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("zkey")
    for text in (path.open(), io.StringIO("zkey")):
        with text, pytest.raises(TypeError, match="binary"):
            read_zkey(text)


def test_buffers_with_gaps_are_refused() -> None:
    with pytest.raises(TypeError, match="contiguous"):
        read_zkey(np.zeros(100, dtype=np.uint8)[::2])


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        read_zkey(tmp_path / "absent")
    assert caught.value.filename == str(tmp_path / "absent")
    with pytest.raises(IsADirectoryError):
        read_zkey(tmp_path)


def test_no_file_descriptor_is_left_open(tmp_path: Path) -> None:
    bad = tmp_path / "bad.zkey"
    bad.write_bytes(b"zkey" + bytes(100))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_zkey(MULT3 / "circuit.zkey")
        with pytest.raises(FormatError):
            read_zkey(bad)
        with pytest.raises(IsADirectoryError):
            read_zkey(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


# ---- what happens to the file later ----


@pytest.mark.parametrize("harm", ["cut", "overwritten", "deleted"])
@pytest.mark.parametrize("kind", ["path", "file"])
def test_harm_to_the_file_after_the_load(harm: str, kind: str, tmp_path: Path) -> None:
    path, original = tmp_path / "key", DATA / "semaphore4_depth1_bn254" / "circuit.zkey"
    path.write_bytes(original.read_bytes())
    if kind == "file":
        with path.open("rb") as file:
            record = read_zkey(file)
    else:
        record = read_zkey(path)
    if harm == "cut":
        os.truncate(path, 0)
    elif harm == "overwritten":
        with path.open("r+b") as file:
            file.write(b"\xff" * path.stat().st_size)
    else:
        path.unlink()
    assert_same(record, read_zkey(original))
    for array in arrays_of(record):
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        assert root.base is None, "the array borrows its memory"


def test_no_mapping_of_the_file_outlives_the_load(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes((MULT3 / "circuit.zkey").read_bytes())
    record = read_zkey(path)
    assert str(path) not in Path("/proc/self/maps").read_text()
    assert record.n_vars == 8


def test_a_caller_may_overwrite_his_buffer_after_the_load() -> None:
    buffer = bytearray((MULT3 / "circuit.zkey").read_bytes())
    record = read_zkey(buffer)
    buffer[:] = b"\xff" * len(buffer)
    buffer.clear()  # no export is left either
    assert_same(record, read_zkey(MULT3 / "circuit.zkey"))


def harmed_while_read(path: Path, harm: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> int:
    # calls harm(i) before the i-th read of the load, returns the number of reads
    reads, preadv = 0, os.preadv

    def harmful(fd: int, buffers: Any, offset: int) -> int:
        nonlocal reads
        harm(reads)
        reads += 1
        return preadv(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", harmful)
    try:
        read_zkey(path)
    finally:
        monkeypatch.setattr(os, "preadv", preadv)
    return reads


def test_a_file_cut_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = tmp_path / "key", (MULT3 / "circuit.zkey").read_bytes()
    path.write_bytes(data)
    n = harmed_while_read(path, lambda i: None, monkeypatch)
    assert n > 20
    for k in range(n):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"became shorter while it was read|empty"):
            harmed_while_read(path, lambda i, k=k: os.truncate(path, 0) if i == k else None, monkeypatch)  # type: ignore[misc]


def test_coefficients_changed_between_the_two_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the second pass finds other rows than the first one counted: refused, nothing is written out of bounds
    path, data = tmp_path / "key", (MULT3 / "circuit.zkey").read_bytes()
    file = File.unpack(data)
    one = file[4][4:48]
    file[4][4:] = one * (len(file[4]) // 44)  # every entry in row 0
    path.write_bytes(data)
    n = harmed_while_read(path, lambda i: None, monkeypatch)
    refused = 0
    for k in range(n):
        path.write_bytes(data)

        def harm(i: int, k: int = k) -> None:
            if i == k:
                with path.open("r+b") as f:
                    f.write(file.pack())

        try:
            harmed_while_read(path, harm, monkeypatch)
        except FormatError as e:
            assert "changed while it was read" in str(e)
            refused += 1
    assert refused == 1


# ---- writing ----


def test_a_path_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path, record = tmp_path / "key", read_zkey(MULT3 / "circuit.zkey")
    path.write_bytes(b"old")
    path.chmod(0o640)
    broken = replace(record, h=None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        write_zkey(broken, path)
    assert path.read_bytes() == b"old"
    write_zkey(record, path)
    assert_same(read_zkey(path), record)
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["key"]
    with pytest.raises(FileNotFoundError):
        write_zkey(record, tmp_path / "absent" / "key")


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def stopped() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_container(tmp_path / "file", "wtns", 2, [(1, 8, stopped())])
    with pytest.raises(RuntimeError, match="4 bytes written, 8 announced"):
        write_container(tmp_path / "file", "wtns", 2, [(1, 8, [b"half"])])
    assert os.listdir(tmp_path) == []


def test_a_new_file_has_the_usual_mode_and_links_stay(tmp_path: Path) -> None:
    record = read_wtns(MULT3 / "witness.wtns")
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    write_wtns(record, link)
    assert link.is_symlink()
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert target.stat().st_mode == ordinary.stat().st_mode


# ---- memory ----


@pytest.mark.unsanitized
def test_loading_takes_the_size_of_the_key(tmp_path: Path) -> None:
    # 180 MB: every section big, coefficients a third of it
    n = 1 << 18
    small = read_zkey(DATA / "mult3_bls12381" / "circuit.zkey")
    g1, g2 = small.a[:1], small.b_2[np.flatnonzero(small.b_2.any(axis=1))[:1]]

    def rows(per_row: int) -> SparseRows:
        nnz = n * per_row
        return SparseRows(
            np.arange(0, nnz + 1, per_row, dtype=np.uint64),
            np.arange(nnz, dtype=np.uint32) % np.uint32(n),
            np.broadcast_to(np.array([3, 1, 4, 1], dtype=np.uint64), (nnz, 4)),
        )

    points = {"a": n, "b_1": n, "c": n - small.n_public - 1, "h": n}
    record = replace(
        small,
        n_vars=n,
        domain_size=n,
        b_2=np.repeat(g2, n, axis=0),
        rows_a=rows(3),
        rows_b=rows(2),
        **{name: np.repeat(g1, k, axis=0) for name, k in points.items()},  # type: ignore[arg-type]
    )
    path = tmp_path / "big.zkey"
    write_zkey(record, path)
    # VmHWM, as ru_maxrss begins with the parent's peak
    script = r"""
import re, sys
from pathlib import Path
from pinzk.formats.zkey import read_zkey
peak = lambda: int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
before = peak()
record = read_zkey(sys.argv[1], check="none")
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, path], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) < path.stat().st_size + 30e6


def test_the_other_curve_is_read_too() -> None:
    assert read_wtns(DATA / "mult3_bls12381" / "witness.wtns").curve is BLS12_381

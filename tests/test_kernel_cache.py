# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels on disk: keyed by content, private, whole or absent, and never needed."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from cases import ROOT

from pinzk import kernel_cache, kernel_compiler, kernels
from pinzk.errors import BackendUnavailable
from pinzk.kernel_cache import Cache, default_folder, pack, unpack
from pinzk.kernels import Builder, Cubin, Unit

try:
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError:
    pytest.skip("the wheel nvidia-cuda-nvrtc is not installed", allow_module_level=True)

UNIT = Unit("vec", "toy")
HEADER = {"key": "k", "arch": "sm_90"}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder of sources that compile in no time."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "toy.cuh").write_text("#pragma once\nnamespace pinzk { template <class> struct ToyOn {}; }\n")
    (folder / "used.cuh").write_text("#pragma once\nconstexpr int one = 1;\n")
    (folder / "unused.cuh").write_text("#pragma once\n")
    (folder / "vec.cu").write_text(
        '#include "used.cuh"\nextern "C" __global__ void f(int* p) { p[0] = one; }\n'
    )
    return folder


@pytest.fixture
def disk(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache" / "kernels")


def build(sources: Path, disk: Cache, sm: int = 90) -> Cubin:
    """As a process of its own would."""
    return Builder(sources=sources, disk=disk).build(UNIT, sm)


# ---- the key ----


def test_what_was_compiled_is_found_again(sources: Path, disk: Cache) -> None:
    first, second = build(sources, disk), build(sources, disk)
    assert [first.origin, second.origin] == ["compiled", "cache"]
    assert first.image == second.image
    assert first.usage == second.usage
    assert list(second.usage) == ["f"]
    assert [name for name, _ in disk.entries()] == [f"vec-toy-sm_90-{first.key[:16]}.kernel"]


def test_the_key_covers_what_the_code_depends_on(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(arch: str = "sm_90", compiler: str = "13.0", unit: Unit = UNIT) -> str:
        return Builder(sources=sources).key(unit, arch, compiler)

    keys = [key(), key(arch="sm_80"), key(compiler="13.1")]
    (sources / "unused.cuh").write_text("int other;\n")
    assert key() == keys[0]
    for name in ("used.cuh", "vec.cu", "toy.cuh"):
        with open(sources / name, "a") as f:
            f.write("// edited\n")
        keys.append(key())
    shutil.copy(sources / "vec.cu", sources / "ntt.cu")
    keys.append(key(unit=Unit("ntt", "toy")))
    monkeypatch.setattr(kernel_compiler, "OPTIONS", (*kernel_compiler.OPTIONS, "-lineinfo"))
    keys.append(key())
    assert len(set(keys)) == len(keys) == 8


def test_the_closure_is_what_is_included() -> None:
    builder = Builder()
    names = set(builder.closure(Unit("vec", "bn254")))
    assert {"vec.cu", "bn254.cuh", "field.cuh", "limbs.cuh"} <= names
    assert not names & {"bls12_381.cuh", "toy.cuh", "ntt.cu"}


# ---- whole or absent ----


def test_a_damaged_file_is_compiled_again_and_mended(sources: Path, disk: Cache) -> None:
    image = build(sources, disk).image
    (file,) = disk.folder.iterdir()
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[-100] ^= 1
    for bad in (b"", good[:10], good[:-1], good + b"\0", bytes(flipped), good.replace(b"sm_90", b"sm_80", 1)):
        file.write_bytes(bad)
        made = build(sources, disk)
        assert made.origin == "compiled"
        assert list(made.usage) == ["f"]
        assert len(made.image) == len(image)
        assert build(sources, disk).origin == "cache"


def test_a_file_in_the_place_of_another_is_not_taken(sources: Path, disk: Cache) -> None:
    build(sources, disk)
    (old,) = disk.folder.iterdir()
    (sources / "used.cuh").write_text("constexpr int one = 2;\n")
    name = f"vec-toy-sm_90-{Builder(sources=sources).key(UNIT, 'sm_90', kernel_compiler.compiler_version())[:16]}.kernel"
    shutil.copy(old, disk.folder / name)
    assert build(sources, disk).origin == "compiled"


def test_the_format_round_trips() -> None:
    for image in (b"", b"\n", b"\x7fELF\n\n\0", bytes(range(256))):
        assert unpack(pack(HEADER, image)) == (HEADER, image)
    assert unpack(b"") is None
    assert unpack(kernel_cache.MARK + b"\n") is None


def test_processes_may_race(sources: Path, disk: Cache) -> None:
    code = (
        "import sys, pathlib\nfrom pinzk.kernels import *\nfrom pinzk.kernel_cache import Cache\n"
        "folder, disk = map(pathlib.Path, sys.argv[1:])\n"
        "print(Builder(sources=folder, disk=Cache(disk)).build(Unit('vec', 'toy'), 90).origin)\n"
    )
    command = [sys.executable, "-P", "-c", code, str(sources), str(disk.folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    origins = [process.communicate(timeout=120)[0].strip() for process in running]
    assert set(origins) <= {"compiled", "cache"}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(disk.entries()) == len(list(disk.folder.iterdir())) == 1  # nothing unfinished is left
    assert build(sources, disk).origin == "cache"


# ---- private, bounded, optional ----


def test_only_the_user_may_read_and_write(sources: Path, disk: Cache) -> None:
    disk.folder.mkdir(parents=True)
    disk.folder.chmod(0o777)
    build(sources, disk)
    (file,) = disk.folder.iterdir()
    assert stat.S_IMODE(disk.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_files_of_others_and_links_are_not_trusted(
    sources: Path, disk: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = build(sources, disk).key
    (file,) = disk.folder.iterdir()
    moved = file.rename(disk.folder.parent / "moved")
    file.symlink_to(moved)
    assert disk.get(file.name, key) is None
    file.unlink()
    moved.rename(file)
    assert disk.get(file.name, key) is not None
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr(kernel_cache, "_said", set())
    assert disk.get(file.name, key) is None
    disk.put("other.kernel", HEADER, b"image")
    assert "belongs to another user" in caplog.text
    assert list(disk.folder.iterdir()) == [file]


def test_a_folder_that_cannot_be_used_costs_one_log_line(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(kernel_cache, "_said", set())
    disk = Cache(tmp_path / "file" / "kernels")
    with caplog.at_level(logging.WARNING):
        assert [build(sources, disk).origin for _ in range(3)] == ["compiled"] * 3
    (record,) = caplog.records
    assert "compiled kernels are not kept; PINZK_CACHE_DIR names another folder" in record.message
    assert disk.entries() == []


def test_a_write_that_fails_leaves_nothing(
    sources: Path, disk: Cache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(kernel_cache, "_said", set())
    assert build(sources, disk).origin == "compiled"
    assert "No space left" in caplog.text
    assert list(disk.folder.iterdir()) == []


def test_the_cache_is_bounded(tmp_path: Path) -> None:
    disk = Cache(tmp_path, limit=5000)
    unfinished, fresh = tmp_path / ".old.part", tmp_path / ".new.part"
    unfinished.write_bytes(b"x" * 10)
    fresh.write_bytes(b"x" * 10)
    os.utime(unfinished, (time.time() - 7200,) * 2)
    for i in range(8):
        disk.put(f"{i}", {"key": "k"}, bytes(1000))
        os.utime(tmp_path / f"{i}", (time.time() - 100 + i,) * 2)
        assert disk.get("0", "k"), "what is in use stays"
    assert sum(size for _, size in disk.entries()) <= 5000
    assert {name for name, _ in disk.entries()} == {"0", "5", "6", "7"}
    assert fresh.exists()
    assert not unfinished.exists()
    disk.put("large", {"key": "k"}, bytes(9000))  # larger than the whole: kept until the next
    assert [name for name, _ in disk.entries()] == ["large"]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("PINZK_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == Path("/home/somebody/.cache/pinzk")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert default_folder() == Path("/home/somebody/.cache/pinzk")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert default_folder() == Path("/var/cache/pinzk")
    monkeypatch.setenv("PINZK_CACHE_DIR", "~/kernels")
    assert default_folder() == Path("/home/somebody/kernels")
    assert Cache().folder == Path("/home/somebody/kernels/kernels")


# ---- kernels that come with pinzk ----


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with one unit for one architecture, made by the build's own step."""
    folder = tmp_path_factory.mktemp("cubins")
    step = [sys.executable, str(ROOT / "tools" / "compile_kernel.py"), str(ROOT)]
    subprocess.run(
        [*step, "vec", "bn254", "90", str(folder / "vec-bn254-sm_90.kernel")], check=True, timeout=120
    )
    return folder


def test_shipped_kernels_are_looked_for_first(
    built: Path, disk: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = Unit("vec", "bn254")
    compiled = Builder(disk=disk).build(unit, 90)
    assert compiled.origin == "compiled"

    def absent() -> None:
        raise BackendUnavailable("no NVRTC here")

    monkeypatch.setattr(kernel_compiler, "_nvrtc", absent)
    found = Builder(shipped=built, disk=disk).build(unit, 90)
    assert found.origin == "shipped"
    assert found.seconds < 0.2
    assert found.key == compiled.key
    assert found.usage == compiled.usage
    # of another curve, or after an edit, there is none
    assert Builder(shipped=built).find_shipped(Unit("vec", "toy"), 90) is None
    assert Builder(shipped=built).find_shipped(unit, 80) is None


def test_shipped_kernels_of_other_sources_are_not_used(built: Path, tmp_path: Path) -> None:
    edited = tmp_path / "edited"
    shutil.copytree(ROOT / "cuda", edited)
    unit = Unit("vec", "bn254")
    assert Builder(sources=edited, shipped=built).find_shipped(unit, 90) is not None
    with open(edited / "field.cuh", "a") as f:
        f.write("// edited\n")
    assert Builder(sources=edited, shipped=built).find_shipped(unit, 90) is None


def test_shipped_kernels_may_come_from_another_nvrtc(
    built: Path, disk: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "compiler_version", lambda: "13.9 (13.9.1)")
    assert Builder(shipped=built, disk=disk).build(Unit("vec", "bn254"), 90).origin == "shipped"


def test_without_nvrtc_a_later_chip_runs_its_generations_code(
    built: Path, disk: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> str:
        raise BackendUnavailable("no NVRTC here")

    monkeypatch.setattr(kernels, "compiler_version", absent)
    builder = Builder(shipped=built, disk=disk)
    assert builder.build(Unit("vec", "bn254"), 93).arch == "sm_90"
    for sm in (89, 100):
        with pytest.raises(BackendUnavailable, match="no NVRTC here"):
            builder.build(Unit("vec", "bn254"), sm)


def test_the_build_option_makes_them(tmp_path: Path) -> None:
    """As a release does, for one unit."""
    native = tmp_path / "native.ini"
    native.write_text(f"[binaries]\npython = '{sys.executable}'\n")  # as pip's build says it
    build_folder, name = tmp_path / "build", "vec-bn254-sm_75.kernel"
    setup = ["setup", str(build_folder), str(ROOT), f"--native-file={native}", "-Dcubins=75"]
    for command in (setup, ["compile", "-C", str(build_folder), name]):
        done = subprocess.run(
            [sys.executable, "-m", "mesonbuild.mesonmain", *command],
            capture_output=True,
            text=True,
            timeout=250,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    found = Builder(shipped=build_folder).find_shipped(Unit("vec", "bn254"), 75)
    assert found is not None
    assert found.arch == "sm_75"

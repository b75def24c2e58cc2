# SPDX-License-Identifier: Apache-2.0
"""Kernels compile for every generation, without a GPU: what they take, what their machine code is made of."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import sass

from pinzk import kernel_compiler, kernels
from pinzk.errors import BackendUnavailable, CompileError
from pinzk.kernel_cache import Cache
from pinzk.kernel_compiler import Usage
from pinzk.kernels import Builder, Cubin, Unit

try:
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError:
    pytest.skip("the wheel nvidia-cuda-nvrtc is not installed", allow_module_level=True)

CURVES = ("bn254", "bls12_381")
HOT = {
    "msm_g1": ["msm_accumulate"],
    "msm_g2": ["msm_accumulate"],
    "ntt": ["ntt_dif", "ntt_dit", "ntt_middle"],
    "sort": [],
    "sparse": ["sparse_rows"],
    "tables": [],
    "vec": ["vec_mul", "vec_mul_sub", "vec_mul_sub_times", "vec_scale", "vec_times"],
}
CALLS = {"msm_accumulate"}
# spill stores, in bytes, that hot kernels may still have on sm_90; as measured with NVRTC 13.0
SPILLS = {
    ("msm_g1-bls12_381", "msm_accumulate"): 86,
    ("msm_g2-bls12_381", "msm_accumulate"): 250,
    ("msm_g2-bn254", "msm_accumulate"): 36,
    ("sparse-bls12_381", "sparse_rows"): 4,
}


@pytest.fixture(scope="session")
def builder(request: pytest.FixtureRequest) -> Builder:
    """Keeps what it compiles for the next run of the tests."""
    return Builder(disk=Cache(request.config.cache.mkdir("kernels")))


def build_all(builder: Builder, sm: int) -> list[Cubin]:
    return builder.build_all([unit for curve in CURVES for unit in kernels.default_units(curve)], sm)


# ---- every kernel, every generation ----


@pytest.mark.parametrize("sm", [75, 80, 90, 100, 120])
def test_every_kernel_compiles(builder: Builder, sm: int, capsys: pytest.CaptureFixture[str]) -> None:
    made = build_all(builder, sm)
    with capsys.disabled():
        print(f"\n{kernels.report(made)}")
    for cubin in made:
        assert cubin.arch == f"sm_{sm}"
        assert cubin.image.startswith(b"\x7fELF")
        assert set(cubin.usage) >= set(HOT[cubin.unit.name])
        for name, usage in cubin.usage.items():
            called = name.startswith("_Z")  # its registers are its callers'
            assert called or 0 < usage.registers <= 255, name
            if cubin.unit.name == "vec":
                assert usage.spill_stores == usage.spill_loads == 0, name


def test_hot_kernels_do_not_spill(builder: Builder) -> None:
    measured = {
        (str(cubin.unit), name): cubin.usage[name].spill_stores
        for cubin in build_all(builder, 90)
        for name in HOT[cubin.unit.name]
    }
    grown = {kernel: spilled for kernel, spilled in measured.items() if spilled > SPILLS.get(kernel, 0)}
    assert grown == {}, "hot kernels spill more than SPILLS allows"
    assert {kernel: spilled for kernel, spilled in measured.items() if spilled} == SPILLS, "tighten SPILLS"


@pytest.mark.skipif(sass.disassembler() is None, reason="the wheel nvidia-cuda-nvdisasm is not installed")
def test_products_of_hot_kernels_are_fused(builder: Builder, tmp_path: Path) -> None:
    for cubin in build_all(builder, 90):
        counts = sass.instructions(cubin.image, tmp_path)
        for name in HOT[cubin.unit.name]:
            assert counts[name]["IMAD.WIDE"] > 100, (
                f"{cubin.unit}: {name} has no products: is the count right?"
            )
            rare = (
                counts[name]["CALL"] if name in CALLS else 0
            )  # the way of points that are equal or infinity
            assert not sass.traps(counts[name] - Counter(CALL=rare)), f"{cubin.unit}: {name}"


@pytest.mark.skipif(sass.disassembler() is None, reason="the wheel nvidia-cuda-nvdisasm is not installed")
def test_products_that_are_not_fused_are_seen(tmp_path: Path) -> None:
    """In BLS12-381's scalar field -1/p = -1 mod 2^32: a minus that the compiler sees pulls the reduction apart."""
    source = (
        '#include "bls12_381.cuh"\n#include "chains.cuh"\nusing F = pinzk::Bls12_381On<pinzk::Chains>::Fr;\n'
    )
    source += 'extern "C" __global__ void product(F* x) { x[0] = x[1] * x[2]; }\n'
    files = Builder().closure(Unit("vec", "bls12_381"))
    opaque = 'asm volatile("sub.u32 %0, 0, %1;" : "=r"(r) : "r"(x));'
    assert files["limbs.cuh"].count(opaque) == 1

    def traps() -> list[str]:
        image, _ = kernel_compiler.compile_program("product.cu", source, files, "sm_90")
        return sass.traps(sass.instructions(image, tmp_path)["product"])

    assert traps() == []
    files["limbs.cuh"] = files["limbs.cuh"].replace(opaque, "r = 0 - x;")
    (trap,) = traps()
    assert trap.startswith("products not fused")


# ---- the log ----


def test_usage_is_read_from_the_log() -> None:
    source = """
__attribute__((noinline)) int pick(int i, int n) { int c[8]; for (int j = 0; j < 8; j++) c[j] = i * j; return c[n % 8]; }
extern "C" __global__ void other(int* p) { p[0] = pick(p[1], p[2]); }
extern "C" __global__ void share(int* p) {
  __shared__ int s[32];
  s[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = pick(s[31 - threadIdx.x], p[33]);
}
"""
    _, log = kernel_compiler.compile_program("usage.cu", source, {}, "sm_90")
    usage = kernel_compiler.parse_usage(log)
    called = usage.pop("_Z4pickii")
    assert called.registers == 0
    assert set(usage) == {"other", "share"}
    assert usage["share"].shared == 128
    assert usage["other"].shared == 0
    assert all(8 <= u.registers < 64 for u in usage.values())
    assert kernel_compiler.parse_usage("") == {}


def test_report_names_every_kernel() -> None:
    log = "Function properties for f\n  16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
    log += "Used 40 registers, used 1 barriers, 64 bytes smem"
    cubin = Cubin(Unit("vec", "toy"), "sm_90", b"", log, "", "13.0", "compiled", 0.0)
    assert cubin.usage == {"f": Usage(40, 8, 12, 16, 64)}
    assert kernels.report([cubin]).splitlines()[1].split() == [
        "vec-toy",
        "sm_90",
        "f",
        "40",
        "8",
        "12",
        "16",
        "64",
    ]


# ---- what to compile for ----


def test_unknown_chips_have_a_named_stand_in() -> None:
    known = (75, 80, 86, 90, 100, 120)
    assert [kernel_compiler.architecture(sm, known) for sm in known] == [f"sm_{sm}" for sm in known]
    # machine code of an older chip of the generation
    assert kernel_compiler.architecture(89, known) == "sm_86"
    assert kernel_compiler.architecture(103, known) == "sm_100"
    # no such chip: the driver finishes
    assert kernel_compiler.architecture(110, known) == "compute_100"
    assert kernel_compiler.architecture(130, known) == "compute_120"
    for old in (0, 50, 72):
        with pytest.raises(BackendUnavailable, match=f"sm_{old}; pinzk needs sm_75"):
            kernel_compiler.architecture(old, known)
    with pytest.raises(BackendUnavailable):
        kernel_compiler.architecture(75, (80, 90))


def test_ptx_for_chips_to_come(builder: Builder) -> None:
    made = builder.build(Unit("vec", "bn254"), 990)
    assert made.arch == f"compute_{max(kernel_compiler.known_architectures())}"
    assert b".entry vec_mul(" in made.image
    assert made.image.endswith(b"\0")  # the driver takes PTX as a string
    assert made.usage == {}


# ---- errors, threads ----


def test_a_kernel_that_does_not_compile_says_why(tmp_path: Path) -> None:
    builder = Builder(sources=tmp_path, disk=Cache(tmp_path / "cache"))
    (tmp_path / "toy.cuh").write_text("namespace pinzk { template <class> struct ToyOn {}; }\n")
    with pytest.raises(CompileError, match=r"vec-toy needs vec\.cu"):
        builder.build(Unit("vec", "toy"), 90)
    (tmp_path / "vec.cu").write_text("int f() { return missing_name; }\n")
    with pytest.raises(
        CompileError, match=r"vec-toy\.cu for sm_90: .*vec\.cu\(1\): error: .*missing_name"
    ) as caught:
        builder.build(Unit("vec", "toy"), 90)
    assert "1 error detected" in caught.value.log
    (tmp_path / "vec.cu").write_text("int f() { return 1; }\n")  # mended
    assert builder.build(Unit("vec", "toy"), 90).origin == "compiled"


def test_no_nvrtc_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from cuda.bindings import nvrtc

    def absent() -> None:
        raise RuntimeError("no such library")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", absent)
    monkeypatch.setattr(kernel_compiler, "_preload", lambda: None)
    kernel_compiler._nvrtc.cache_clear()
    kernel_compiler.compiler_version.cache_clear()
    with pytest.raises(BackendUnavailable, match=r"NVRTC is not installed: pip install 'pinzk\[cuda\]'"):
        Builder(disk=Cache(tmp_path)).build(Unit("vec", "bn254"), 90)
    monkeypatch.undo()
    kernel_compiler._nvrtc.cache_clear()


def test_the_interpreter_runs_while_nvrtc_compiles(tmp_path: Path) -> None:
    builder = Builder(disk=Cache(tmp_path))
    work = threading.Thread(target=builder.build, args=(Unit("vec", "bn254"), 90))
    gaps, last = [], time.perf_counter()
    work.start()
    while work.is_alive():
        time.sleep(0.002)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
    # held through the compilation, the lock would leave one gap of nearly all the time
    assert max(gaps) < sum(gaps) / 2
    assert len(gaps) > 10


def test_a_unit_is_compiled_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    compile_program = kernel_compiler.compile_program

    def counted(name: str, source: str, files: dict[str, str], arch: str) -> tuple[bytes, str]:
        calls.append((name, arch))
        return compile_program(name, source, files, arch)

    monkeypatch.setattr(kernels, "compile_program", counted)
    builder = Builder(disk=Cache(tmp_path))
    unit = Unit("vec", "toy")
    made = builder.build_all([unit] * 6, 90, threads=6)
    assert calls == [("vec-toy.cu", "sm_90")]
    assert all(cubin is made[0] for cubin in [*made, builder.build(unit, 90)])
    assert builder.build(unit, 80).arch == "sm_80"
    assert len(calls) == 2


def test_the_process_has_one_builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINZK_CACHE_DIR", str(tmp_path))
    kernels._forget()
    made = kernels.build_all([Unit("vec", "toy")], 90)
    assert kernels.build(Unit("vec", "toy"), 90) is made[0]
    assert (tmp_path / "kernels").is_dir()
    assert kernels.shipped() == []  # none in a development build
    monkeypatch.undo()
    kernels._forget()


def test_answers_come_in_the_order_asked(builder: Builder) -> None:
    units = [Unit("vec", "toy"), Unit("vec", "bn254"), Unit("vec", "bls12_381")]
    assert [cubin.unit for cubin in builder.build_all(units, 90, threads=1)] == units
    assert builder.build_all([], 90) == []


def test_release_wheels_carry_every_unit() -> None:
    build = (Path(__file__).parent.parent / "meson.build").read_text()
    (listed,) = re.findall(r"foreach unit : \[(.*?)\]", build)
    assert tuple(re.findall(r"'(\w+)'", listed)) == kernels.NAMES

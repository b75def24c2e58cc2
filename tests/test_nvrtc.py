# SPDX-License-Identifier: Apache-2.0
"""The arithmetic headers compile for every GPU generation: NVRTC from its wheel, no GPU, no driver, no toolkit.

The kernels here use what real ones use (products, inversion, mixed and full addition in G1 and G2), because a template that
nobody calls is hardly compiled at all. Machine code (cubin) is made of all but G2's sums, where the assembler alone takes
ten seconds a kernel: those end as PTX, for the oldest and the newest. What the code computes is tested where there is a GPU.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import pytest

try:
    version("nvidia-cuda-nvrtc")
    from cuda.bindings import nvrtc

    from pinzk.kernel_compiler import compiler_version

    compiler_version()  # finds the library where the bindings alone would not
except (PackageNotFoundError, ImportError):
    pytest.skip("the wheels nvidia-cuda-nvrtc and cuda-python are not installed", allow_module_level=True)

GENERATIONS = [75, 80, 90, 100, 120]
# with the carry chains that kernels use; the toy has a single word, and none
CURVES = {"toy.cuh": "Toy", "bn254.cuh": "Bn254On<Chains>", "bls12_381.cuh": "Bls12_381On<Chains>"}
HEADERS = {
    p.name: p.read_text() for p in files("pinzk").joinpath("cuda").iterdir() if p.name.endswith(".cuh")
}

FIELDS = """
extern "C" __global__ void fr_step(Curve::Fr* x, const Curve::Fr* y, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * y[i] + y[i].squared() - x[i];
}
extern "C" __global__ void fp2_step(Curve::G2::F* x, const Curve::G2::F* y, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * y[i] + y[i].squared();
}
extern "C" __global__ void fp_inverse(Curve::Fp* x, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i].inverse();
}
"""
POINTS = """
using Point = Affine<Curve::GROUP::F>;
using Sum = Xyzz<Curve::GROUP::F>;
extern "C" __global__ void add_mixed(Sum* sums, const Point* points, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Sum s = sums[i];
  s.add(points[i]);
  sums[i] = s;
}
"""
SUMS = """
extern "C" __global__ void add_full(Sum* sums, u32 n) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sums[i].add(sums[n + i]);
}
"""


def compile_unit(body: str, target: str, header: str, curve: str = "") -> str:
    """Compile one translation unit for e.g. ``"sm_90"``; returns the log, which has the resources of each kernel."""
    source = "".join(
        [
            f'#include "{header}"\n#include "chains.cuh"\n',
            f"using namespace pinzk;\nusing Curve = {curve};\n" if curve else "",
            body,
        ]
    )
    names, texts = [n.encode() for n in HEADERS], [t.encode() for t in HEADERS.values()]
    status, program = nvrtc.nvrtcCreateProgram(source.encode(), b"unit.cu", len(names), texts, names)
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={target}", "--std=c++17", "-default-device", "--ptxas-options=-v"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    text = log.rstrip(b"\0 ").decode()
    assert status == nvrtc.nvrtcResult.NVRTC_SUCCESS, text
    binary = target.startswith("sm_")
    _, size = nvrtc.nvrtcGetCUBINSize(program) if binary else nvrtc.nvrtcGetPTXSize(program)
    assert size > 0
    nvrtc.nvrtcDestroyProgram(program)
    return text


def resources(log: str) -> dict[str, tuple[int, int]]:
    """Registers and bytes of spill stores of each kernel."""
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        spills, registers = (
            re.search(r"(\d+) bytes spill stores", part),
            re.search(r"Used (\d+) registers", part),
        )
        assert spills
        assert registers
        found[part[: part.index("'")]] = int(registers[1]), int(spills[1])
    return found


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("header", sorted(name for name, text in HEADERS.items() if "__global__" not in text))
def test_header_compiles_alone(header, generation):  # those with kernels are units' bodies: test_kernels.py
    first = "bn254.cuh" if "Needs `Curve`" in HEADERS[header] else header  # as in a unit
    compile_unit(f'#include "{header}"\n', f"sm_{generation}", first, CURVES.get(first, ""))


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("header", CURVES)
def test_fields_and_g1_compile_without_spills(header, generation, record_property):
    body = FIELDS + POINTS.replace("GROUP", "G1") + (SUMS if generation == 90 else "")
    used = resources(compile_unit(body, f"sm_{generation}", header, CURVES[header]))
    record_property("registers, spills", used)
    assert set(used) == set(re.findall(r"__global__ void (\w+)", body))
    assert all(spills == 0 for _, spills in used.values()), used


@pytest.mark.parametrize("generation", [GENERATIONS[0], GENERATIONS[-1]])
@pytest.mark.parametrize("header", CURVES)
def test_g2_compiles_to_ptx(header, generation):
    compile_unit(POINTS.replace("GROUP", "G2"), f"compute_{generation}", header, CURVES[header])


def test_an_error_is_an_error():
    """The tests above can fail: a unit that misuses a type does not compile."""
    with pytest.raises(AssertionError, match=r"unit\.cu"):
        compile_unit(
            'extern "C" __global__ void f(Curve::Fr* x) { x->nothing(); }',
            "sm_90",
            "bn254.cuh",
            "Bn254On<Chains>",
        )

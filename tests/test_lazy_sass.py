# SPDX-License-Identifier: Apache-2.0
"""Machine code of the GPU's products and sums on sm_90: as many multiplications as the algorithm has, no spills."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import PackageNotFoundError, version

import pytest
import sass

from pinzk import kernel_compiler
from pinzk.kernel_compiler import Usage
from pinzk.kernels import CURVES, Builder, Unit

try:
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError:
    pytest.skip("the wheel nvidia-cuda-nvrtc is not installed", allow_module_level=True)
if sass.disassembler() is None:
    pytest.skip("the wheel nvidia-cuda-nvdisasm is not installed", allow_module_level=True)

SOURCE = """
#include "{curve}.cuh"
#include "lazy_curve.cuh"
using namespace pinzk;
using Fp = {struct}<Chains>::Fp;
using Fr = {struct}<Chains>::Fr;
template <class E>
PINZK_INLINE E in(const u64* p, int i) {{ return E::load(p + threadIdx.x * 64 + i * E::words); }}
#define PRODUCT(name, E, expression) \\
  extern "C" __global__ void name(u64* out, const u64* p) {{ \\
    const E a = in<E>(p, 0), b = in<E>(p, 1), c = in<E>(p, 2), d = in<E>(p, 3); \\
    (expression).store(out + threadIdx.x * 64); \\
  }}
PRODUCT(product, Single<Fp>, a * b)
PRODUCT(square, Single<Fp>, a.squared())
PRODUCT(cross, Single<Fp>, Single<Fp>::cross(a, b, c, d))
PRODUCT(product_2, Double<Fp>, a * b)
PRODUCT(square_2, Double<Fp>, a.squared())
PRODUCT(cross_2, Double<Fp>, Double<Fp>::cross(a, b, c, d))
extern "C" __global__ void scalar_square(u64* out, const u64* p) {{
  store_words(out + threadIdx.x * 4, Fr{{load_words<4>(p + threadIdx.x * 4)}}.squared().limbs);
}}
#define SUM(name, E, blocks) \\
  extern "C" __global__ void __launch_bounds__(128, blocks) name(u64* out, const u64* table, const u32* entries, int n) {{ \\
    auto sum = LazyXyzz<E>::infinity(); \\
    for (int i = 0; i < n; i++) {{ \\
      const u32 e = entries[i * 128 + threadIdx.x]; \\
      sum.add(LazyAffine<E>::load(table + u64(e >> 1) * LazyAffine<E>::words).negated_if(e & 1)); \\
    }} \\
    sum.store(out + threadIdx.x * sum.words); \\
  }}
SUM(sum_1, Single<Fp>, Fp::N == 6 ? 3 : 4)
SUM(sum_2, Double<Fp>, 2)
"""

# bytes of spill stores in the sums: as measured with NVRTC 13.0
SPILLS = {("bls12_381", "sum_1"): 8, ("bls12_381", "sum_2"): 256}

Code = tuple[dict[str, Counter[str]], dict[str, Usage]]


@pytest.fixture(scope="module", params=["bn254", "bls12_381"])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Code]:
    curve = request.param
    builder, source = Builder(), SOURCE.format(curve=curve, struct=CURVES[curve])
    files = builder.closure(Unit("tables", curve))
    image, log = kernel_compiler.compile_program("products.cu", source, files, "sm_90")
    counts = sass.instructions(image, tmp_path_factory.mktemp("sass"))
    return curve, (counts, kernel_compiler.parse_usage(log))


def multiplications(counts: Counter[str]) -> int:
    """Of the wide kind, which every partial product of two words is."""
    return counts["IMAD.WIDE"] + counts["IMAD.HI"]


def test_products_have_the_multiplications_of_the_algorithm(code: tuple[str, Code]) -> None:
    curve, (counts, usage) = code
    w = 12 if curve == "bls12_381" else 8
    square, product, cross = w * w + w * (w + 1) // 2, 2 * w * w, 3 * w * w
    # four products under a reduction, or twice two
    cross_2 = 10 * w * w if curve == "bls12_381" else 12 * w * w
    want = {
        "product": product,
        "square": square,
        "cross": cross,
        "product_2": 2 * cross,
        "square_2": 2 * product,
        "cross_2": cross_2,
        "scalar_square": 8 * 8 + 8 * 9 // 2,
    }
    for name, wanted in want.items():
        # besides: addresses
        assert wanted - 3 * w <= multiplications(counts[name]) <= wanted + 8, name
        assert sass.traps(counts[name]) == [], name
        assert counts[name]["LOP3"] <= 4 * w, name
        assert usage[name].spill_stores == usage[name].spill_loads == 0, name


def test_sums_fit_their_registers(code: tuple[str, Code]) -> None:
    curve, (counts, usage) = code
    for name, registers in (("sum_1", 168 if curve == "bls12_381" else 128), ("sum_2", 255)):
        assert usage[name].registers <= registers
        assert usage[name].spill_stores <= SPILLS.get((curve, name), 0), name
        # the detour of equal points and infinity is called, all else is not
        assert [trap for trap in sass.traps(counts[name]) if not trap.endswith("calls")] == [], name

// SPDX-License-Identifier: Apache-2.0
// Multi-scalar sums in G2.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "lazy_curve.cuh"

namespace pinzk {
using Element = Double<Curve::Fp>;
}  // namespace pinzk
#include "msm.cuh"

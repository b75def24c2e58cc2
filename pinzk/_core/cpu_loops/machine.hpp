// SPDX-License-Identifier: Apache-2.0
// Which arithmetic this processor gets: every curve is compiled for each machine type, one is chosen when first asked for.
#pragma once
#include "adx.hpp"
#include "curve_ops_of.hpp"

namespace pinzk::cpu {

// Curve is bn254.cuh's Bn254On or its likes
template <template <class> class Curve>
const CurveOps* ops_for_this_machine() {
#if defined(__x86_64__)
  if (Adx::available()) {
    static const CurveOpsOf<Curve<Adx>> adx;
    return &adx;
  }
#endif
  static const CurveOpsOf<Curve<Host>> portable;
  return &portable;
}

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// Every curve is compiled for each machine type; the table that fits the level in use is chosen at each call.
#pragma once
#include "curve_ops_of.hpp"
#include "machine.hpp"

namespace pinzk::cpu {

// Curve is bn254.cuh's Bn254On or its likes
template <template <class> class Curve>
const CurveOps* choose_ops() {
#if defined(__x86_64__)
  if (level_in_use() >= Level::adx) {
    static const CurveOpsOf<Curve<Adx>> adx;
    return &adx;
  }
#endif
  static const CurveOpsOf<Curve<Host>> host;
  return &host;
}

}  // namespace pinzk::cpu

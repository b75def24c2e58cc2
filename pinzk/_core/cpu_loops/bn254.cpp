// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve.
#include "bn254.cuh"

#include "curve_ops_of.hpp"

namespace pinzk::cpu {

const CurveOps* bn254_ops() {
  static const CurveOpsOf<Bn254> ops;
  return &ops;
}

}  // namespace pinzk::cpu

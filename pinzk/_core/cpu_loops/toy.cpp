// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve.
#include "toy.cuh"

#include "curve_ops_of.hpp"

namespace pinzk::cpu {

const CurveOps* toy_ops() {
  static const CurveOpsOf<Toy> ops;
  return &ops;
}

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve.
#include "toy.cuh"

#include "curve_ops_of.hpp"
#include "inverse.hpp"

namespace pinzk::cpu {

const CurveOps* toy_ops() {
  static const CurveOpsOf<ToyOn<Host>> ops;
  return &ops;
}

}  // namespace pinzk::cpu

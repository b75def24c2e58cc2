// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve.
#include "bls12_381.cuh"

#include "curve_ops_of.hpp"

namespace pinzk::cpu {

const CurveOps* bls12_381_ops() {
  static const CurveOpsOf<Bls12_381> ops;
  return &ops;
}

}  // namespace pinzk::cpu

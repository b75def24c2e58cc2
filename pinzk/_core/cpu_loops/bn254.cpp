// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve, once per machine type.
#include "bn254.cuh"

#include "choose_ops.hpp"

namespace pinzk::cpu {

const CurveOps* bn254_ops() { return choose_ops<Bn254On>(); }

}  // namespace pinzk::cpu

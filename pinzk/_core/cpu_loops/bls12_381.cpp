// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve, once per machine type.
#include "bls12_381.cuh"

#include "choose_ops.hpp"

namespace pinzk::cpu {

const CurveOps* bls12_381_ops() { return choose_ops<Bls12_381On>(); }

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// The host loops compiled for one curve, once per machine type.
#include "bn254.cuh"

#include "machine.hpp"

namespace pinzk::cpu {

const CurveOps* bn254_ops() { return ops_for_this_machine<Bn254On>(); }

}  // namespace pinzk::cpu

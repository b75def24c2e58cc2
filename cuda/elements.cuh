// SPDX-License-Identifier: Apache-2.0
// Elements of Fr in device memory: loads and stores of 16 bytes, and which element is this thread's. Needs `Curve`.
#pragma once
#include "chains.cuh"

namespace pinzk {

using Fr = Curve::Fr;

struct alignas(16) Quad {
  u64 w[2];
};
PINZK_INLINE Fr load(const u64* p) {
  const Quad lo = reinterpret_cast<const Quad*>(p)[0], hi = reinterpret_cast<const Quad*>(p)[1];
  return Fr{{{lo.w[0], lo.w[1], hi.w[0], hi.w[1]}}};
}
PINZK_INLINE void store(u64* p, const Fr& x) {
  reinterpret_cast<Quad*>(p)[0] = Quad{{x.limbs.word[0], x.limbs.word[1]}};
  reinterpret_cast<Quad*>(p)[1] = Quad{{x.limbs.word[2], x.limbs.word[3]}};
}

// this thread's element, and the step to its next one
PINZK_INLINE u64 first() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
PINZK_INLINE u64 stride() { return u64(gridDim.x) * blockDim.x; }

}  // namespace pinzk

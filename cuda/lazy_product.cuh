// SPDX-License-Identifier: Apache-2.0
// Sums of products of lazy residues under one reduction. Bounds follow from p / R at compile time.
//
// The rows of all products of a sum and of the reduction are interleaved, so the state stays W words (e, o as in chains.cuh)
// however many products there are. It holds the sum of the first operands and p, times 2^32: `holds` says whether that fits.
// The result is below (sum of products) / R + p: `stays` says below which multiple of p. docs/kernels.md, 6.
#pragma once
#include "lazy.cuh"

namespace pinzk {

namespace chain {

// r = sum of a[k] b[k] / R + at most p. In: the a's together with p fit 2^(32W)
template <class F, int K>
PINZK_INLINE void dot(u32* r, const u32* const (&a)[K], const u32* const (&b)[K]) {
  constexpr int W = 2 * F::N;
  u32 x[W], y[W];
  row_set<W>(x, a[0], b[0][0]);
  row_set<W>(y, a[0] + 1, b[0][0]);
  PINZK_UNROLL
  for (int k = 1; k < K; k++) {
    row<W>(y, a[k] + 1, b[k][0]);
    row<W>(x, a[k], b[k][0]);
    y[W - 1] = addc(y[W - 1], 0);
  }
  reduce_row<F>(x, y);
  PINZK_UNROLL
  for (int i = 1; i < W; i++) {
    u32 *e = i & 1 ? y : x, *o = i & 1 ? x : y;
    e[0] = add_cc(e[0], o[1]);
    row_shift<W>(o, a[0] + 1, b[0][i]);
    row<W>(e, a[0], b[0][i]);
    o[W - 1] = addc(o[W - 1], 0);
    PINZK_UNROLL
    for (int k = 1; k < K; k++) {
      row<W>(o, a[k] + 1, b[k][i]);
      row<W>(e, a[k], b[k][i]);
      o[W - 1] = addc(o[W - 1], 0);
    }
    reduce_row<F>(e, o);
  }
  join<W>(r, y, x);
}

}  // namespace chain

}  // namespace pinzk

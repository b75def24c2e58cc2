// SPDX-License-Identifier: Apache-2.0
// Products of lazy residues: squares, and sums of products under one reduction. Bounds follow from p / R at compile time.
//
// The rows of all products of a sum and of the reduction are interleaved, so the state stays W words (e, o as in chains.cuh)
// however many products there are. It holds the sum of the first operands and p, times 2^32: `holds` says whether that fits.
// The result is below (sum of products) / R + p: `stays` says below which multiple of p. docs/kernels.md, 4.
#pragma once
#include "lazy.cuh"

namespace pinzk {

namespace chain {

// k p < 2^(32W)
template <class F>
constexpr bool holds(int k) {
  return static_cast<u64>(k) * ((F::modulus.word[F::N - 1] >> 32) + 1) <= u64(1) << 32;
}
// k p^2 / R + p <= limit p
template <class F>
constexpr bool stays(int k, int limit) {
  return static_cast<u64>(k) * ((F::modulus.word[F::N - 1] >> 32) + 1) <= static_cast<u64>(limit - 1) << 32;
}

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

// r = a^2 / R + at most p. Row i is a_i (a_i + 2 (a >> 32(i+1)) 2^32) at column 2i: it begins i words up in the state, so
// that the reduction need not wait for it. In: 2a + p < 2^(32W)
template <class F>
PINZK_INLINE void square(u32* r, const u32* a) {
  constexpr int W = 2 * F::N;
  u32 x[W], y[W], twice[W];
  PINZK_UNROLL
  for (int j = 1; j < W; j++) twice[j] = a[j] << 1 | a[j - 1] >> 31;
  const auto word = [&](int i, int k) { return k == 0 ? a[i] : k == 1 ? a[i + 1] << 1 : twice[i + k]; };
  PINZK_UNROLL
  for (int j = 0; j < W; j += 2) mul_wide(x[j], x[j + 1], word(0, j), a[0]), mul_wide(y[j], y[j + 1], word(0, j + 1), a[0]);
  reduce_row<F>(x, y);
  PINZK_UNROLL
  for (int i = 1; i < W; i++) {
    u32 *e = i & 1 ? y : x, *o = i & 1 ? x : y;
    const u32 lowest = o[1];
    const int even = i + (i & 1), odd = i - (i & 1);  // where the row begins in e and in o
    PINZK_UNROLL
    for (int j = 0; j < odd; j++) o[j] = o[j + 2];
    PINZK_UNROLL
    for (int j = odd; j < W; j += 2) {
      const u32 w = word(i, j + 1 - i), c0 = j < W - 2 ? o[j + 2] : 0, c1 = j < W - 2 ? o[j + 3] : 0;
      if (j == odd)
        mad_wide(o[j], o[j + 1], w, a[i], c0, c1);
      else
        madc_wide(o[j], o[j + 1], w, a[i], c0, c1);
    }
    PINZK_UNROLL
    for (int j = even; j < W; j += 2) {
      if (j == even)
        mad_wide(e[j], e[j + 1], word(i, j - i), a[i], e[j], e[j + 1]);
      else
        madc_wide(e[j], e[j + 1], word(i, j - i), a[i], e[j], e[j + 1]);
    }
    if (even < W) o[W - 1] = addc(o[W - 1], 0);
    e[0] = add_cc(e[0], lowest);
    reduce_row<F, true>(e, o);
  }
  join<W>(r, y, x);
}

}  // namespace chain

}  // namespace pinzk

// SPDX-License-Identifier: Apache-2.0
// Chains: the GPU's field arithmetic, on 32-bit words with carry chains that ptxas keeps as IMAD.WIDE.
//
// A machine type beside Portable (field.cuh). Rows of a product are split by parity of the word, so that each pair
// (low, high) of a partial product lands on an aligned pair of an accumulator: value = e + 2^32 o. docs/kernels.md, 2.
// On the host the primitives emulate the flag: the same code is tested there, slowly.
#pragma once
#include "field.cuh"

namespace pinzk {

// 32-bit words of a value of N 64-bit limbs
template <int N>
struct Words {
  static constexpr int W = 2 * N;
  u32 w[W];

  static PINZK_INLINE Words from(const Limbs<N>& a) {
    Words r;
    PINZK_UNROLL
    for (int i = 0; i < N; i++) r.w[2 * i] = static_cast<u32>(a.word[i]), r.w[2 * i + 1] = static_cast<u32>(a.word[i] >> 32);
    return r;
  }
  PINZK_INLINE Limbs<N> limbs() const {
    Limbs<N> a;
    PINZK_UNROLL
    for (int i = 0; i < N; i++) a.word[i] = w[2 * i] | static_cast<u64>(w[2 * i + 1]) << 32;
    return a;
  }
};

namespace chain {

template <int N>
constexpr u32 word32(const Limbs<N>& a, int i) {
  return static_cast<u32>(a.word[i / 2] >> (i % 2 * 32));
}

// acc += (a[0], a[2], ..) * b (+ the flag, where `carry`); leaves its carry in the flag. Pass a + 1 for the odd words.
template <int W, bool carry = false>
PINZK_INLINE void row(u32* acc, const u32* a, u32 b) {
  if constexpr (carry)
    madc_wide(acc[0], acc[1], a[0], b, acc[0], acc[1]);
  else
    mad_wide(acc[0], acc[1], a[0], b, acc[0], acc[1]);
  PINZK_UNROLL
  for (int j = 2; j < W; j += 2) madc_wide(acc[j], acc[j + 1], a[j], b, acc[j], acc[j + 1]);
}
template <int W>
PINZK_INLINE void row_set(u32* acc, const u32* a, u32 b) {
  PINZK_UNROLL
  for (int j = 0; j < W; j += 2) mul_wide(acc[j], acc[j + 1], a[j], b);
}
// acc = acc / 2^64 + row + flag: the state moves down one word, so the halves change roles
template <int W>
PINZK_INLINE void row_shift(u32* acc, const u32* a, u32 b) {
  PINZK_UNROLL
  for (int j = 0; j < W - 2; j += 2) madc_wide(acc[j], acc[j + 1], a[j], b, acc[j + 2], acc[j + 3]);
  madc_wide(acc[W - 2], acc[W - 1], a[W - 2], b, 0, 0);
}
// r = e / 2^32 + o
template <int W>
PINZK_INLINE void join(u32* r, const u32* e, const u32* o) {
  r[0] = add_cc(o[0], e[1]);
  PINZK_UNROLL
  for (int j = 1; j < W - 1; j++) r[j] = addc_cc(o[j], e[j + 1]);
  r[W - 1] = addc(o[W - 1], 0);
}

// e + 2^32 o += q p (+ the flag at o, where `carry`) with q chosen so that the lowest word becomes zero
template <class F, bool carry = false>
PINZK_INLINE void reduce_row(u32* e, u32* o) {
  constexpr int W = 2 * F::N;
  u32 p[W];
  PINZK_UNROLL
  for (int i = 0; i < W; i++) p[i] = word32(F::modulus, i);
  constexpr u32 np = static_cast<u32>(F::np);
  const u32 q = np == 0xffffffffu ? negate(e[0]) : e[0] * np;
  row<W, carry>(o, p + 1, q);
  row<W>(e, p, q);
  o[W - 1] = addc(o[W - 1], 0);
}

// r = a b / R, below a b / R + p. In: a + p < 2^(32W), so a < p where p is tight; b any
template <class F>
PINZK_INLINE void montgomery(u32* r, const u32* a, const u32* b) {
  constexpr int W = 2 * F::N;
  u32 x[W], y[W];
  row_set<W>(x, a, b[0]);
  row_set<W>(y, a + 1, b[0]);
  reduce_row<F>(x, y);
  PINZK_UNROLL
  for (int i = 1; i < W; i++) {
    u32 *e = i & 1 ? y : x, *o = i & 1 ? x : y;
    e[0] = add_cc(e[0], o[1]);
    row_shift<W>(o, a + 1, b[i]);
    row<W>(e, a, b[i]);
    o[W - 1] = addc(o[W - 1], 0);
    reduce_row<F>(e, o);
  }
  join<W>(r, y, x);
}

// r = a - b if a >= b, else a
template <int W>
PINZK_INLINE void subtract_once(u32* r, const u32* a, const u32* b) {
  u32 d[W];
  d[0] = sub_cc(a[0], b[0]);
  PINZK_UNROLL
  for (int i = 1; i < W; i++) d[i] = subc_cc(a[i], b[i]);
  const bool below = subc(0, 0) != 0;
  PINZK_UNROLL
  for (int i = 0; i < W; i++) r[i] = below ? a[i] : d[i];
}

}  // namespace chain

struct Chains : PowerInverse {
  // bounds as in Portable
  template <class F>
  static PINZK_INLINE F add(const F& a, const F& b) {
    const auto x = Words<F::N>::from(a.limbs), y = Words<F::N>::from(b.limbs);
    Words<F::N> s;
    s.w[0] = add_cc(x.w[0], y.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < s.W; i++) s.w[i] = addc_cc(x.w[i], y.w[i]);
    return reduced(F{s.limbs()});
  }

  template <class F>
  static PINZK_INLINE F sub(const F& a, const F& b) {
    const auto x = Words<F::N>::from(a.limbs), y = Words<F::N>::from(b.limbs);
    Words<F::N> d;
    d.w[0] = sub_cc(x.w[0], y.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < d.W; i++) d.w[i] = subc_cc(x.w[i], y.w[i]);
    const u32 mask = subc(0, 0);
    d.w[0] = add_cc(d.w[0], chain::word32(F::modulus, 0) & mask);
    PINZK_UNROLL
    for (int i = 1; i < d.W; i++) d.w[i] = addc_cc(d.w[i], chain::word32(F::modulus, i) & mask);
    return F{d.limbs()};
  }

  template <class F>
  static PINZK_INLINE F mul(const F& a, const F& b) {
    const auto x = Words<F::N>::from(a.limbs), y = Words<F::N>::from(b.limbs);
    Words<F::N> r;
    chain::montgomery<F>(r.w, x.w, y.w);
    return reduced(F{r.limbs()});
  }

  template <class F>
  static PINZK_INLINE F reduced(const F& a) {
    const auto x = Words<F::N>::from(a.limbs), p = Words<F::N>::from(F::modulus);
    Words<F::N> r;
    chain::subtract_once<Words<F::N>::W>(r.w, x.w, p.w);
    return F{r.limbs()};
  }
};

}  // namespace pinzk

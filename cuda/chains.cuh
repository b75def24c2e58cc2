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

// q with which q p + x is zero mod 2^32
template <class F>
PINZK_INLINE u32 reduction_factor(u32 x) {
  constexpr u32 np = static_cast<u32>(F::np);
  return np == 0xffffffffu ? negate(x) : x * np;
}

// e + 2^32 o += q p (+ the flag at o, where `carry`) with q chosen so that the lowest word becomes zero
template <class F, bool carry = false>
PINZK_INLINE void reduce_row(u32* e, u32* o) {
  constexpr int W = 2 * F::N;
  u32 p[W];
  PINZK_UNROLL
  for (int i = 0; i < W; i++) p[i] = word32(F::modulus, i);
  const u32 q = reduction_factor<F>(e[0]);
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

  // where 2a + p might not fit the words, the one of a and p - a whose top bit is clear
  template <class F>
  static PINZK_INLINE F squared(const F& a) {
    auto x = Words<F::N>::from(a.limbs);
    if constexpr (!chain::holds<F>(3)) {
      const bool large = a.limbs.word[F::N - 1] >> ((F::bits - 1) % 64) & 1;
      u32 d[x.W];
      d[0] = sub_cc(chain::word32(F::modulus, 0), x.w[0]);
      PINZK_UNROLL
      for (int i = 1; i < x.W; i++) d[i] = subc_cc(chain::word32(F::modulus, i), x.w[i]);
      PINZK_UNROLL
      for (int i = 0; i < x.W; i++) x.w[i] = large ? d[i] : x.w[i];
    }
    Words<F::N> r;
    chain::square<F>(r.w, x.w);
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

// SPDX-License-Identifier: Apache-2.0
// Lazy<F>: residues kept below 2p between butterflies, and products by fixed operands (Shoup) that need no Montgomery form.
//
// Memory holds residues below p; passes of a transform hand on residues below 2p. A fixed operand w is stored with
// w' = floor(w 2^(32W) / p): x w - floor(x w' / 2^(32W)) p is x w mod p or p more. w is a plain integer, so a product leaves
// x in whatever form it had. Bounds: docs/kernels.md, 2.
#pragma once
#include "chains.cuh"

namespace pinzk {

// a fixed operand: w and floor(w 2^(32W) / p), 64 bytes for a scalar
template <class F>
struct Fixed {
  Words<F::N> w, quotient;
};

template <class F>
struct Lazy {
  static constexpr int N = F::N, W = 2 * N;
  // 2p, and whether 4p fits the words
  static constexpr Limbs<N> twice_p = minus(Limbs<N>{}, minus(minus(Limbs<N>{}, F::modulus), F::modulus));
  static constexpr bool roomy = F::bits + 2 <= 64 * N;

  Words<N> v;  // below 2p unless a function says otherwise

  // in: below 2p; out: below p
  PINZK_INLINE Lazy canonical() const {
    Lazy r;
    const auto p = Words<N>::from(F::modulus);
    chain::subtract_once<W>(r.v.w, v.w, p.w);
    return r;
  }

  friend PINZK_INLINE Lazy operator+(const Lazy& a, const Lazy& b) {
    Lazy s;
    u32 d[W];
    s.v.w[0] = add_cc(a.v.w[0], b.v.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < W; i++) s.v.w[i] = addc_cc(a.v.w[i], b.v.w[i]);
    const u32 carry = roomy ? 0 : addc(0, 0);
    d[0] = sub_cc(s.v.w[0], chain::word32(twice_p, 0));
    PINZK_UNROLL
    for (int i = 1; i < W; i++) d[i] = subc_cc(s.v.w[i], chain::word32(twice_p, i));
    const bool below = subc(carry, 0) == 0xffffffffu;
    PINZK_UNROLL
    for (int i = 0; i < W; i++) s.v.w[i] = below ? s.v.w[i] : d[i];
    return s;
  }

  friend PINZK_INLINE Lazy operator-(const Lazy& a, const Lazy& b) {
    Lazy d;
    d.v.w[0] = sub_cc(a.v.w[0], b.v.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < W; i++) d.v.w[i] = subc_cc(a.v.w[i], b.v.w[i]);
    const u32 mask = subc(0, 0);
    d.v.w[0] = add_cc(d.v.w[0], chain::word32(twice_p, 0) & mask);
    PINZK_UNROLL
    for (int i = 1; i < W - 1; i++) d.v.w[i] = addc_cc(d.v.w[i], chain::word32(twice_p, i) & mask);
    d.v.w[W - 1] = addc(d.v.w[W - 1], chain::word32(twice_p, W - 1) & mask);
    return d;
  }

  // sums and differences that only go into a product: below 4p where 4p fits
  friend PINZK_INLINE Lazy loose_add(const Lazy& a, const Lazy& b) {
    if constexpr (!roomy) return a + b;
    Lazy s;
    s.v.w[0] = add_cc(a.v.w[0], b.v.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < W - 1; i++) s.v.w[i] = addc_cc(a.v.w[i], b.v.w[i]);
    s.v.w[W - 1] = addc(a.v.w[W - 1], b.v.w[W - 1]);
    return s;
  }
  friend PINZK_INLINE Lazy loose_sub(const Lazy& a, const Lazy& b) {
    if constexpr (!roomy) return a - b;
    Lazy d;
    d.v.w[0] = add_cc(a.v.w[0], chain::word32(twice_p, 0));
    PINZK_UNROLL
    for (int i = 1; i < W - 1; i++) d.v.w[i] = addc_cc(a.v.w[i], chain::word32(twice_p, i));
    d.v.w[W - 1] = addc(a.v.w[W - 1], chain::word32(twice_p, W - 1));
    d.v.w[0] = sub_cc(d.v.w[0], b.v.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < W - 1; i++) d.v.w[i] = subc_cc(d.v.w[i], b.v.w[i]);
    d.v.w[W - 1] = subc(d.v.w[W - 1], b.v.w[W - 1]);
    return d;
  }

  // this * w; in: anything that fits the words; out: below p (1 + this / 2^(32W) + 2^-29), so below 2p
  PINZK_INLINE Lazy times(const Fixed<F>& f) const;

  // Montgomery product by a residue below p; in: below 2p; out: below 2p
  PINZK_INLINE Lazy times(const Words<N>& b) const {
    Lazy r;
    chain::montgomery<F>(r.v.w, b.w, v.w);
    return r;
  }
};

namespace chain {

// q = floor(a b / 2^(32W)) or one less (with probability 2^-29): columns W-2 and up. A row ends on a pair that is new, so
// that it has no carry, or on the pair of the row before, whose carry begins the next.
template <int W>
PINZK_INLINE void mul_high(u32* q, const u32* a, const u32* b) {
  u32 e[W + 2], o[W + 2];  // e[k]: column W-2+k, o[k]: column W-1+k
  mul_wide(e[0], e[1], a[W - 2], b[0]);
  mul_wide(o[0], o[1], a[W - 1], b[0]);
  e[2] = 0;
  PINZK_UNROLL
  for (int i = 1; i < W; i++) {
    int j = i < W - 1 ? W - 2 - i : 1, k = i + j - (W - 2);  // the last row starts one pair later
    mad_wide(e[k], e[k + 1], a[j], b[i], e[k], e[k + 1]);
    for (j += 2, k += 2; j < W - 2; j += 2, k += 2) madc_wide(e[k], e[k + 1], a[j], b[i], e[k], e[k + 1]);
    if (j < W) madc_wide(e[k], e[k + 1], a[j], b[i], e[k], i & 1 ? 0 : e[k + 1]), k += 2;
    if (!(i & 1)) e[k] = addc(0, 0);
    j = W - 1 - i, k = 0;
    mad_wide(o[0], o[1], a[j], b[i], o[0], o[1]);
    for (j += 2, k += 2; j < W - 2; j += 2, k += 2) madc_wide(o[k], o[k + 1], a[j], b[i], o[k], o[k + 1]);
    if (j < W) madc_wide(o[k], o[k + 1], a[j], b[i], o[k], i & 1 ? o[k + 1] : 0), k += 2;
    if (i & 1) o[k] = addc(0, 0);
  }
  (void)add_cc(e[1], o[0]);
  PINZK_UNROLL
  for (int k = 0; k < W - 1; k++) q[k] = addc_cc(e[k + 2], o[k + 1]);
  q[W - 1] = addc(e[W + 1], o[W]);
}

// e + 2^32 o += a b mod 2^(32W)
template <int W>
PINZK_INLINE void mul_low(u32* e, u32* o, const u32* a, const u32* b) {
  PINZK_UNROLL
  for (int i = 0; i < W; i++) {
    int j = i & 1;
    if (i + j < W - 1) {
      mad_wide(e[i + j], e[i + j + 1], a[j], b[i], e[i + j], e[i + j + 1]);
      for (j += 2; i + j < W - 1; j += 2) madc_wide(e[i + j], e[i + j + 1], a[j], b[i], e[i + j], e[i + j + 1]);
    }
    j = 1 - (i & 1);
    if (i + j < W - 1) {
      mad_wide(o[i + j - 1], o[i + j], a[j], b[i], o[i + j - 1], o[i + j]);
      for (j += 2; i + j < W - 1; j += 2) madc_wide(o[i + j - 1], o[i + j], a[j], b[i], o[i + j - 1], o[i + j]);
      o[W - 2] = madc_lo(a[W - 1 - i], b[i], o[W - 2]);
    } else {
      o[W - 2] += a[W - 1 - i] * b[i];
    }
  }
}

template <int W>
PINZK_INLINE void join_low(u32* r, const u32* e, const u32* o) {
  r[0] = e[0];
  r[1] = add_cc(e[1], o[0]);
  PINZK_UNROLL
  for (int k = 2; k < W - 1; k++) r[k] = addc_cc(e[k], o[k - 1]);
  r[W - 1] = addc(e[W - 1], o[W - 2]);
}

}  // namespace chain

namespace chain {

// e + 2^32 o -= q p mod 2^(32W)
template <class F>
PINZK_INLINE void subtract_multiple(u32* e, u32* o, const u32* q) {
  constexpr int W = 2 * F::N;
  constexpr u64 low = F::modulus.word[0];
  if constexpr (low == 0xffffffff00000001u) {
    // p = h 2^64 - 2^32 + 1 (BLS12-381 Fr): two words less of product, - q p = - q h 2^64 + q 2^32 - q
    u32 h[W];
    PINZK_UNROLL
    for (int i = 2; i < W; i++) h[i] = word32(minus(Limbs<F::N>{}, F::modulus), i);  // the words of -(h 2^64)
    mul_low<W - 2>(e + 2, o + 2, h + 2, q);
    o[0] = add_cc(o[0], q[0]);
    PINZK_UNROLL
    for (int i = 1; i < W - 2; i++) o[i] = addc_cc(o[i], q[i]);
    o[W - 2] = addc(o[W - 2], q[W - 2]);
    e[0] = sub_cc(e[0], q[0]);
    PINZK_UNROLL
    for (int i = 1; i < W - 1; i++) e[i] = subc_cc(e[i], q[i]);
    e[W - 1] = subc(e[W - 1], q[W - 1]);
  } else {
    u32 m[W];
    PINZK_UNROLL
    for (int i = 0; i < W; i++) m[i] = word32(minus(Limbs<F::N>{}, F::modulus), i);
    mul_low<W>(e, o, m, q);
  }
}

}  // namespace chain

template <class F>
PINZK_INLINE Lazy<F> Lazy<F>::times(const Fixed<F>& f) const {
  u32 q[W], e[W], o[W];
  chain::mul_high<W>(q, v.w, f.quotient.w);
  PINZK_UNROLL
  for (int i = 0; i < W; i++) e[i] = o[i] = 0;
  chain::mul_low<W>(e, o, v.w, f.w.w);
  chain::subtract_multiple<F>(e, o, q);
  Lazy r;
  chain::join_low<W>(r.v.w, e, o);
  return r;
}

// the fixed operand of a Montgomery residue m = w R mod p, R = 2^(32W): w by one reduction, and, because
// w R - m = floor(w R / p) p, the quotient as -m / p mod R
template <class F>
PINZK_INLINE Fixed<F> fixed_operand(const F& montgomery) {
  constexpr int W = 2 * F::N;
  Fixed<F> f;
  f.w = Words<F::N>::from(montgomery.to_canonical());
  constexpr Limbs<F::N> ninv = F::negative_inverse();  // -1/p mod R
  const auto m = Words<F::N>::from(montgomery.limbs), k = Words<F::N>::from(ninv);
  u32 e[W], o[W];
  PINZK_UNROLL
  for (int i = 0; i < W; i++) e[i] = o[i] = 0;
  chain::mul_low<W>(e, o, m.w, k.w);
  chain::join_low<W>(f.quotient.w, e, o);
  return f;
}

}  // namespace pinzk

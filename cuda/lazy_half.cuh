// SPDX-License-Identifier: Apache-2.0
// Half<F>: an element of Fp2 in two neighbouring threads, the even one with the real coordinate, the odd one with the other.
//
// So a sum of points over Fp2 takes the registers of one over Fp in each thread. Products read the partner's words by
// shuffles: all 32 threads of a warp call them together, with full masks, which keeps the code uniform. Device only.
#pragma once
#include "lazy_curve.cuh"

namespace pinzk {

template <class F>
struct Half {
  static constexpr int threads = 2;
  static constexpr int words = 2 * F::N;  // of the whole element

  Lazy<F> v;

  static PINZK_INLINE bool odd() { return threadIdx.x & 1; }
  static PINZK_INLINE bool branch(bool condition) { return __any_sync(0xffffffffu, condition); }

  static PINZK_INLINE Half zero() { return {}; }
  static PINZK_INLINE Half one() { return odd() ? zero() : Half{Single<F>::one().v}; }
  // p: the whole element's words
  static PINZK_INLINE Half load(const u64* p) { return {Single<F>::load(p + (odd() ? F::N : 0)).v}; }
  PINZK_INLINE void store(u64* p) const { Single<F>{v}.store(p + (odd() ? F::N : 0)); }
  PINZK_INLINE Half canonical() const { return {v.canonical()}; }

  PINZK_INLINE bool blank() const { return both(Single<F>{v}.blank()); }
  PINZK_INLINE bool is_zero() const { return both(Single<F>{v}.is_zero()); }
  PINZK_INLINE bool may_be_zero() const { return Single<F>{v}.may_be_zero(); }  // of this coordinate

  friend PINZK_INLINE Half operator+(const Half& a, const Half& b) { return {a.v + b.v}; }
  friend PINZK_INLINE Half operator-(const Half& a, const Half& b) { return {a.v - b.v}; }
  // even: a0 b0 - a1 b1; odd: a1 b0 + a0 b1
  friend PINZK_INLINE Half operator*(const Half& a, const Half& b) {
    const Lazy<F> x = partner(a.v), y = partner(b.v);
    return {lazy_dot(a.v, even_odd(b.v, y), even_odd(lazy_minus(x), x), even_odd(y, b.v))};
  }
  // even: (a0 - a1)(a0 + a1); odd: a0 2 a1
  PINZK_INLINE Half squared() const {
    const Lazy<F> x = partner(v);
    return {lazy_mul<4>(even_odd(v - x, x), loose_add(v, even_odd(x, v)))};
  }
  static PINZK_INLINE Half cross(const Half& a, const Half& b, const Half& c, const Half& d) {
    const Lazy<F> x = partner(a.v), y = partner(b.v), z = partner(c.v), w = partner(d.v);
    return {lazy_dot(a.v, even_odd(b.v, y), even_odd(lazy_minus(x), x), even_odd(y, b.v),  //
                     lazy_minus(c.v), even_odd(d.v, w), even_odd(z, lazy_minus(z)), even_odd(w, d.v))};
  }
  PINZK_INLINE Half negated_if(bool negate) const { return {Single<F>{v}.negated_if(negate).v}; }

 private:
  static PINZK_INLINE bool both(bool mine) { return __shfl_xor_sync(0xffffffffu, int(mine), 1) & int(mine); }
  static PINZK_INLINE Lazy<F> partner(const Lazy<F>& a) {
    Lazy<F> r;
    PINZK_UNROLL
    for (int i = 0; i < a.W; i++) r.v.w[i] = __shfl_xor_sync(0xffffffffu, a.v.w[i], 1);
    return r;
  }
  static PINZK_INLINE Lazy<F> even_odd(const Lazy<F>& even, const Lazy<F>& otherwise) {
    const bool second = odd();
    Lazy<F> r;
    PINZK_UNROLL
    for (int i = 0; i < r.W; i++) r.v.w[i] = second ? otherwise.v.w[i] : even.v.w[i];
    return r;
  }
};

}  // namespace pinzk

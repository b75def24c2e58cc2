// SPDX-License-Identifier: Apache-2.0
// LazyXyzz<E>: sums of points on the GPU, coordinates below 2p, a sum in one thread. Formulas as Xyzz in curve.cuh; every
// addition is complete.
//
// Infinity is all words zero, and nothing else has ZZ = 0 mod p. Then equal x, an opposite point and infinity on the left
// all show as H = 0, and an affine point that is infinity has x = 0: one cheap test of a few words leads to a branch that is
// almost never taken and goes the slow way (`add_any`). E is an element of lazy_element.cuh.
#pragma once
#include "curve.cuh"
#include "lazy_element.cuh"

namespace pinzk {

// an affine point, coordinates up to p; infinity is x all words zero, y 0 or p
template <class E>
struct LazyAffine {
  static constexpr int words = 2 * E::words;
  E x, y;

  static PINZK_INLINE LazyAffine load(const u64* row) { return {E::load(row), E::load(row + E::words)}; }
  PINZK_INLINE bool is_infinity() const { return x.blank() && y.is_zero(); }
  PINZK_INLINE LazyAffine negated_if(bool negate) const { return {x, y.negated_if(negate)}; }
};

template <class E>
struct LazyXyzz {
  static constexpr int words = 4 * E::words;  // of 64 bits, in memory: X, Y, ZZ, ZZZ

  E x, y, zz, zzz;

  static PINZK_INLINE LazyXyzz infinity() { return {E::zero(), E::zero(), E::zero(), E::zero()}; }
  static PINZK_INLINE LazyXyzz from(const LazyAffine<E>& p) {
    const bool nothing = p.is_infinity();
    const E one = nothing ? E::zero() : E::one();
    return {p.x, nothing ? E::zero() : p.y, one, one};
  }
  static PINZK_INLINE LazyXyzz load(const u64* p) {
    return {E::load(p), E::load(p + E::words), E::load(p + 2 * E::words), E::load(p + 3 * E::words)};
  }
  PINZK_INLINE void store(u64* p) const {
    x.store(p), y.store(p + E::words), zz.store(p + 2 * E::words), zzz.store(p + 3 * E::words);
  }
  PINZK_INLINE bool is_infinity() const { return zz.blank(); }
  // coordinates below p
  PINZK_INLINE LazyXyzz canonical() const { return {x.canonical(), y.canonical(), zz.canonical(), zzz.canonical()}; }

  // this += p
  PINZK_INLINE void add(const LazyAffine<E>& p) {
    const E h = p.x * zz - x, r = p.y * zzz - y;
    if (h.may_be_zero() || p.x.may_be_zero()) {
      *this = add_any(*this, p);
      return;
    }
    sum(x, y, h, r);
  }

  // this += o
  PINZK_INLINE void add(const LazyXyzz& o) {
    const E u = x * o.zz, s = y * o.zzz, h = o.x * zz - u, r = o.y * zzz - s;
    if (h.may_be_zero()) {
      *this = add_any(*this, o);
      return;
    }
    zz = zz * o.zz, zzz = zzz * o.zzz;
    sum(u, s, h, r);
  }

  PINZK_INLINE LazyXyzz doubled() const {
    const E u = y + y, v = u.squared(), w = u * v, s = x * v, xx = x.squared(), m = xx + xx + xx;
    const E x3 = m.squared() - (s + s);
    return {x3, E::cross(m, s - x3, w, y), v * zz, w * zzz};  // infinity stays all zeros
  }

 private:
  template <class>
  friend struct LazyXyzz;

  // the common end of additions: (u, s) is the left point's (X, Y) over the denominator that zz, zzz already have
  PINZK_INLINE void sum(const E& u, const E& s, const E& h, const E& r) {
    const E hh = h.squared(), hhh = h * hh, q = u * hh, x3 = r.squared() - hhh - (q + q);
    y = E::cross(r, q - x3, s, hhh);
    x = x3;
    zz = zz * hh;
    zzz = zzz * hhh;
  }

  using Slow = LazyXyzz<typename E::Called>;
  static PINZK_INLINE Slow slow(const LazyXyzz& a) { return {a.x.called(), a.y.called(), a.zz.called(), a.zzz.called()}; }
  static PINZK_INLINE LazyXyzz fast(const Slow& a) { return {E::of(a.x), E::of(a.y), E::of(a.zz), E::of(a.zzz)}; }

  static PINZK_INLINE LazyXyzz add_any(LazyXyzz a, LazyAffine<E> p) { return add_any(a, from(p)); }
  static PINZK_COLD LazyXyzz add_any(LazyXyzz a, LazyXyzz o) {
    if (o.is_infinity()) return a;
    if (a.is_infinity()) return o;
    Slow left = slow(a), right = slow(o);
    const typename E::Called u = left.x * right.zz, s = left.y * right.zzz, h = right.x * left.zz - u,
                             r = right.y * left.zzz - s;
    if (h.is_zero()) return r.is_zero() ? fast(left.doubled()) : infinity();
    left.zz = left.zz * right.zz, left.zzz = left.zzz * right.zzz;
    left.sum(u, s, h, r);
    return fast(left);
  }
};

// the element of sums over F
template <class F>
struct LazyOf {
  using Element = Single<F>;
};
template <class F>
struct LazyOf<Fp2<F>> {
  using Element = Double<F>;
};

}  // namespace pinzk

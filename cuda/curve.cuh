// SPDX-License-Identifier: Apache-2.0
// Points of y^2 = x^3 + b: Affine<F> as stored everywhere, Xyzz<F> for sums. Every addition is complete.
//
// Affine infinity is all zeros (never on these curves: b != 0). Xyzz keeps x = X/ZZ, y = Y/ZZZ with ZZ^3 = ZZZ^2 and
// infinity as ZZ = 0 (Explicit-Formulas Database, shortw/xyzz). F is Field or Fp2.
#pragma once
#include "fp2.cuh"

namespace pinzk {

template <class F>
struct Affine {
  F x, y;

  static constexpr Affine infinity() { return {F::zero(), F::zero()}; }
  constexpr bool is_infinity() const { return x.is_zero() && y.is_zero(); }
  friend constexpr bool operator==(const Affine& a, const Affine& b) { return a.x == b.x && a.y == b.y; }
  friend PINZK_INLINE Affine operator-(const Affine& a) { return {a.x, -a.y}; }
  bool on_curve(const F& b) const { return is_infinity() || y.squared() == x.squared() * x + b; }
};

template <class F>
struct Xyzz {
  F x, y, zz, zzz;

  static constexpr Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
  static PINZK_INLINE Xyzz from(const Affine<F>& p) {
    return p.is_infinity() ? infinity() : Xyzz{p.x, p.y, F::one(), F::one()};
  }
  constexpr bool is_infinity() const { return zz.is_zero(); }
  friend PINZK_INLINE Xyzz operator-(const Xyzz& a) { return {a.x, -a.y, a.zz, a.zzz}; }

  // 2 p (mdbl-2008-s-1); a point of order two gives ZZ = 0, infinity
  PINZK_OUTLINE static Xyzz twice(const Affine<F>& p) {
    if (p.is_infinity()) return infinity();
    const F u = p.y.doubled(), v = u.squared(), w = u * v, s = p.x * v, xx = p.x.squared(), m = xx.doubled() + xx;
    const F x3 = m.squared() - s.doubled();
    return {x3, m * (s - x3) - w * p.y, v, w};
  }

  // 2 this (dbl-2008-s-1)
  PINZK_OUTLINE Xyzz doubled() const {
    if (is_infinity()) return *this;
    const F u = y.doubled(), v = u.squared(), w = u * v, s = x * v, xx = x.squared(), m = xx.doubled() + xx;
    const F x3 = m.squared() - s.doubled();
    return {x3, m * (s - x3) - w * y, v * zz, w * zzz};
  }

  // this + p (madd-2008-s); equal and opposite points and infinity included
  PINZK_OUTLINE void add(const Affine<F>& p) {
    if (p.is_infinity()) return;
    if (is_infinity()) {
      *this = from(p);
      return;
    }
    const F h = p.x * zz - x, r = p.y * zzz - y;
    if (h.is_zero()) {
      *this = r.is_zero() ? twice(p) : infinity();
      return;
    }
    const F hh = h.squared(), hhh = h * hh, q = x * hh;
    x = r.squared() - hhh - q.doubled();
    y = r * (q - x) - y * hhh;
    zz *= hh;
    zzz *= hhh;
  }

  // this + o (add-2008-s); complete as above
  PINZK_OUTLINE void add(const Xyzz& o) {
    if (o.is_infinity()) return;
    if (is_infinity()) {
      *this = o;
      return;
    }
    const F u = x * o.zz, s = y * o.zzz, h = o.x * zz - u, r = o.y * zzz - s;
    if (h.is_zero()) {
      *this = r.is_zero() ? doubled() : infinity();
      return;
    }
    const F hh = h.squared(), hhh = h * hh, q = u * hh;
    x = r.squared() - hhh - q.doubled();
    y = r * (q - x) - s * hhh;
    zz = zz * o.zz * hh;
    zzz = zzz * o.zzz * hhh;
  }

  // one inversion
  PINZK_OUTLINE Affine<F> to_affine() const {
    if (is_infinity()) return Affine<F>::infinity();
    const F i = zzz.inverse(), z = i * zz, zi = z.squared();  // z = ZZ/ZZZ = 1/Z
    return {x * zi, y * i};
  }

  // scalar * this, scalar canonical; not constant time
  template <int M>
  PINZK_OUTLINE Xyzz times_vartime(const Limbs<M>& scalar) const {
    Xyzz sum = infinity();
    for (int i = bit_length(scalar) - 1; i >= 0; i--) {
      sum = sum.doubled();
      if (bit(scalar, i)) sum.add(*this);
    }
    return sum;
  }
};

}  // namespace pinzk

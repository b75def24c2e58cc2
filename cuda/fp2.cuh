// SPDX-License-Identifier: Apache-2.0
// Fp2<F> = F[u] / (u^2 + 1), for the base fields of both curves (p = 3 mod 4). Stored c0, c1.
#pragma once
#include "field.cuh"

namespace pinzk {

template <class F>
struct Fp2 {
  using Base = F;
  static_assert(F::modulus.word[0] % 4 == 3, "-1 must be a non-residue");

  F c0, c1;

  static constexpr Fp2 zero() { return {F::zero(), F::zero()}; }
  static constexpr Fp2 one() { return {F::one(), F::zero()}; }
  constexpr bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
  friend constexpr bool operator==(const Fp2& a, const Fp2& b) { return a.c0 == b.c0 && a.c1 == b.c1; }
  friend constexpr bool operator!=(const Fp2& a, const Fp2& b) { return !(a == b); }

  friend PINZK_INLINE Fp2 operator+(const Fp2& a, const Fp2& b) { return {a.c0 + b.c0, a.c1 + b.c1}; }
  friend PINZK_INLINE Fp2 operator-(const Fp2& a, const Fp2& b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
  friend PINZK_INLINE Fp2 operator-(const Fp2& a) { return {-a.c0, -a.c1}; }
  Fp2& operator+=(const Fp2& b) { return *this = *this + b; }
  Fp2& operator-=(const Fp2& b) { return *this = *this - b; }
  Fp2& operator*=(const Fp2& b) { return *this = *this * b; }
  PINZK_INLINE Fp2 doubled() const { return *this + *this; }

  // Karatsuba: three products
  friend PINZK_OUTLINE Fp2 operator*(const Fp2& a, const Fp2& b) {
    const F x = a.c0 * b.c0, y = a.c1 * b.c1;
    return {x - y, (a.c0 + a.c1) * (b.c0 + b.c1) - x - y};
  }
  // (c0 + c1)(c0 - c1), 2 c0 c1: two products
  PINZK_OUTLINE Fp2 squared() const { return {(c0 + c1) * (c0 - c1), (c0 * c1).doubled()}; }
  Fp2 conjugate() const { return {c0, -c1}; }
  PINZK_INLINE Fp2 times(const F& k) const { return {c0 * k, c1 * k}; }

  // 1 / this; 0 for 0
  PINZK_OUTLINE Fp2 inverse() const {
    const F n = (c0.squared() + c1.squared()).inverse();
    return {c0 * n, -(c1 * n)};
  }
};

}  // namespace pinzk

// SPDX-License-Identifier: Apache-2.0
// The tower over Fp2: Fp6 = Fp2[v] / (v^3 - xi), Fp12 = Fp6[w] / (w^2 - v), with xi = xi_real + u.
//
// An element of Fp12 is also a polynomial in w with six coefficients in Fp2 (`coefficient`): c0 holds w^0, w^2, w^4 and c1
// holds w^1, w^3, w^5. C is a struct of pairing_curves.hpp.
#pragma once
#include "pairing_curves.hpp"

namespace pinzk::pairing {

// xi * a
template <class C, class F2>
PINZK_INLINE F2 times_xi(const F2& a) {
  static_assert(C::xi_real == 1 || C::xi_real == 9);
  if constexpr (C::xi_real == 1) {
    return {a.c0 - a.c1, a.c0 + a.c1};
  } else {
    const F2 a9 = a.doubled().doubled().doubled() + a;
    return {a9.c0 - a.c1, a9.c1 + a.c0};
  }
}

template <class C>
struct Fp6 {
  using F = Fp2<typename C::Curve::Fp>;

  F a0, a1, a2;

  static constexpr Fp6 zero() { return {F::zero(), F::zero(), F::zero()}; }
  static constexpr Fp6 one() { return {F::one(), F::zero(), F::zero()}; }
  friend constexpr bool operator==(const Fp6& a, const Fp6& b) { return a.a0 == b.a0 && a.a1 == b.a1 && a.a2 == b.a2; }
  friend Fp6 operator+(const Fp6& a, const Fp6& b) { return {a.a0 + b.a0, a.a1 + b.a1, a.a2 + b.a2}; }
  friend Fp6 operator-(const Fp6& a, const Fp6& b) { return {a.a0 - b.a0, a.a1 - b.a1, a.a2 - b.a2}; }
  friend Fp6 operator-(const Fp6& a) { return {-a.a0, -a.a1, -a.a2}; }
  Fp6 doubled() const { return *this + *this; }

  // v * this
  Fp6 times_v() const { return {times_xi<C>(a2), a0, a1}; }
  // b0 * this: three products
  Fp6 times(const F& b0) const { return {a0 * b0, a1 * b0, a2 * b0}; }
  // (b0 + b1 v) * this: five products
  Fp6 times(const F& b0, const F& b1) const {
    const F x = a0 * b0, y = a1 * b1;
    return {x + times_xi<C>((a1 + a2) * b1 - y), (a0 + a1) * (b0 + b1) - x - y, (a0 + a2) * b0 - x + y};
  }
  // Karatsuba: six products
  friend Fp6 operator*(const Fp6& a, const Fp6& b) {
    const F x = a.a0 * b.a0, y = a.a1 * b.a1, z = a.a2 * b.a2;
    return {x + times_xi<C>((a.a1 + a.a2) * (b.a1 + b.a2) - y - z), (a.a0 + a.a1) * (b.a0 + b.a1) - x - y + times_xi<C>(z),
            (a.a0 + a.a2) * (b.a0 + b.a2) - x - z + y};
  }

  // 1 / this; 0 for 0
  Fp6 inverse() const {
    const F x = a0.squared() - times_xi<C>(a1 * a2), y = times_xi<C>(a2.squared()) - a0 * a1, z = a1.squared() - a0 * a2;
    const F n = (a0 * x + times_xi<C>(a2 * y + a1 * z)).inverse();
    return {x * n, y * n, z * n};
  }
};

template <class C>
struct Fp12 {
  using F = Fp2<typename C::Curve::Fp>;
  using F6 = Fp6<C>;

  F6 c0, c1;

  static constexpr Fp12 one() { return {F6::one(), F6::zero()}; }
  friend constexpr bool operator==(const Fp12& a, const Fp12& b) { return a.c0 == b.c0 && a.c1 == b.c1; }
  friend constexpr bool operator!=(const Fp12& a, const Fp12& b) { return !(a == b); }

  // the coefficient of w^i
  F& coefficient(int i) {
    F6& half = i % 2 ? c1 : c0;
    return i / 2 == 0 ? half.a0 : i / 2 == 1 ? half.a1 : half.a2;
  }

  friend Fp12 operator*(const Fp12& a, const Fp12& b) {
    const F6 x = a.c0 * b.c0, y = a.c1 * b.c1;
    return {x + y.times_v(), (a.c0 + a.c1) * (b.c0 + b.c1) - x - y};
  }
  Fp12& operator*=(const Fp12& b) { return *this = *this * b; }

  Fp12 squared() const {
    const F6 x = c0 * c1;
    return {(c0 + c1) * (c0 + c1.times_v()) - x - x.times_v(), x.doubled()};
  }

  // this^(p^6): the inverse of an element of the cyclotomic subgroup
  Fp12 conjugate() const { return {c0, -c1}; }

  // 1 / this; 0 for 0
  Fp12 inverse() const {
    const F6 n = (c0 * c0 - (c1 * c1).times_v()).inverse();
    return {c0 * n, -(c1 * n)};
  }

  // this * (l0 + l1 w + l3 w^3): thirteen products
  Fp12 times_013(const F& l0, const F& l1, const F& l3) const {
    const F6 x = c0.times(l0), y = c1.times(l1, l3);
    return {x + y.times_v(), (c0 + c1).times(l0 + l1, l3) - x - y};
  }
  // this * (l0 + l2 w^2 + l3 w^3)
  Fp12 times_023(const F& l0, const F& l2, const F& l3) const {
    const F6 x = c0.times(l0, l2), y = c1.times(l3).times_v();
    return {x + y.times_v(), (c0 + c1).times(l0, l2 + l3) - x - y};
  }

  // Square of an element with this^(p^4 - p^2 + 1) = 1 (Granger and Scott, eprint 2009/565): three squares in
  // Fp4 = Fp2[w^3], on the pairs of coefficients (w^0, w^3), (w^1, w^4), (w^2, w^5).
  Fp12 cyclotomic_squared() const {
    const Fp4 x = square(c0.a0, c1.a1), y = square(c1.a0, c0.a2), z = square(c0.a1, c1.a2);
    const F t = times_xi<C>(z.c1);
    return {{thrice_less_twice(x.c0, c0.a0), thrice_less_twice(y.c0, c0.a1), thrice_less_twice(z.c0, c0.a2)},
            {thrice_plus_twice(t, c1.a0), thrice_plus_twice(x.c1, c1.a1), thrice_plus_twice(y.c1, c1.a2)}};
  }

 private:
  struct Fp4 {
    F c0, c1;
  };
  // (a + b s)^2 with s^2 = xi
  static Fp4 square(const F& a, const F& b) {
    const F aa = a.squared(), bb = b.squared();
    return {aa + times_xi<C>(bb), (a + b).squared() - aa - bb};
  }
  static F thrice_less_twice(const F& a, const F& b) { return (a - b).doubled() + a; }
  static F thrice_plus_twice(const F& a, const F& b) { return (a + b).doubled() + a; }
};

// base^exponent by squaring, for any of the types above; not constant time
template <class T, int M>
T power_vartime(const T& base, const Limbs<M>& exponent) {
  T r = T::one();
  for (int i = bit_length(exponent) - 1; i >= 0; i--) {
    r = r.squared();
    if (bit(exponent, i)) r = r * base;
  }
  return r;
}

}  // namespace pinzk::pairing

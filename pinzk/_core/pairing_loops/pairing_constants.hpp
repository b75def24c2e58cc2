// SPDX-License-Identifier: Apache-2.0
// Constants of the pairing, derived once per process from the modulus and the seed: Frobenius factors and loop digits.
#pragma once
#include <vector>

#include "tower.hpp"

namespace pinzk::pairing {

using Digits = std::vector<signed char>;

// n in digits -1, 0, 1, least significant first: its signed form where that has fewer non-zero digits, else its binary one
inline Digits digits(u128 n) {
  Digits binary, naf;
  int ones = 0, signs = 0;
  for (u128 m = n; m; m >>= 1) {
    binary.push_back(m & 1);
    ones += m & 1;
  }
  for (u128 m = n; m; m >>= 1) {
    const int d = m & 1 ? 2 - static_cast<int>(m & 3) : 0;
    m = d < 0 ? m + 1 : m - d;
    naf.push_back(d);
    signs += d != 0;
  }
  return signs < ones ? naf : binary;
}

// a / divisor, rounded down
template <int N>
Limbs<N> divided(Limbs<N> a, u64 divisor) {
  u128 rest = 0;
  for (int i = N; i-- > 0;) {
    rest = rest << 64 | a.word[i];
    a.word[i] = static_cast<u64>(rest / divisor);
    rest %= divisor;
  }
  return a;
}

template <class C>
struct Constants {
  using Fp = typename C::Curve::Fp;
  using F = Fp2<Fp>;

  F gamma[6];      // w^(i (p - 1)) = xi^(i (p - 1) / 6)
  F psi_x, psi_y;  // psi(x, y) = (conj(x) psi_x, conj(y) psi_y): the Frobenius map seen on the twist
  Digits seed;     // of |z|
  Digits loop;     // of the Miller loop: 6z + 2 for BN, |z| for BLS12

  static const Constants& get() {
    static const Constants constants;
    return constants;
  }

 private:
  Constants() {
    const F xi{Fp::constant(C::xi_real), Fp::one()};
    gamma[0] = F::one();
    gamma[1] = power_vartime(xi, divided(Fp::modulus, 6));
    for (int i = 2; i < 6; i++) gamma[i] = gamma[i - 1] * gamma[1];
    psi_x = C::twist == Twist::d ? gamma[2] : gamma[2].inverse();
    psi_y = C::twist == Twist::d ? gamma[3] : gamma[3].inverse();
    seed = digits(C::seed);
    loop = digits(C::family == Family::bn ? u128(C::seed) * 6 + 2 : u128(C::seed));
  }
};

// f^p
template <class C>
Fp12<C> frobenius(Fp12<C> f) {
  const auto& constants = Constants<C>::get();
  for (int i = 0; i < 6; i++) f.coefficient(i) = f.coefficient(i).conjugate() * constants.gamma[i];
  return f;
}

// the same map on points of the twist
template <class C>
Affine<Fp2<typename C::Curve::Fp>> psi(const Affine<Fp2<typename C::Curve::Fp>>& q) {
  const auto& constants = Constants<C>::get();
  return {q.x.conjugate() * constants.psi_x, q.y.conjugate() * constants.psi_y};
}

}  // namespace pinzk::pairing

// SPDX-License-Identifier: Apache-2.0
// The final exponentiation: f^(k (p^12 - 1) / r) with a small factor k prime to r, which makes the hard part short.
#pragma once
#include "pairing_constants.hpp"

namespace pinzk::pairing {

// f^z, f in the cyclotomic subgroup
template <class C>
Fp12<C> power_of_seed(const Fp12<C>& f) {
  const Digits& seed = Constants<C>::get().seed;
  const Fp12<C> inverse = f.conjugate();
  Fp12<C> r = f;
  for (size_t i = seed.size() - 1; i-- > 0;) {
    r = r.cyclotomic_squared();
    if (seed[i]) r *= seed[i] > 0 ? f : inverse;
  }
  return C::seed_negative ? r.conjugate() : r;
}

// BN: k = 2z (6z^2 + 3z + 1) (Fuentes-Castaneda, Knapp and Rodriguez-Henriquez, SAC 2011). The exponent is
// (1 + 6z + 12z^2 + 12z^3) + (4z + 6z^2 + 12z^3) p + (6z + 6z^2 + 12z^3) p^2 + (-1 + 4z + 6z^2 + 12z^3) p^3.
template <class C>
Fp12<C> hard_part_bn(const Fp12<C>& f) {
  const Fp12<C> f2z = power_of_seed(f).cyclotomic_squared(), f6z = f2z.cyclotomic_squared() * f2z;
  const Fp12<C> f6z2 = power_of_seed(f6z), f12z3 = power_of_seed(f6z2.cyclotomic_squared());
  const Fp12<C> a = f12z3 * f6z2 * f6z, b = a * f2z.conjugate();
  return a * f6z2 * f * frobenius(b * frobenius(a * frobenius(b * f.conjugate())));
}

// BLS12: k = 3 (Hayashida, Hayasaka and Teruya, eprint 2020/875). The exponent is (z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3.
template <class C>
Fp12<C> hard_part_bls12(const Fp12<C>& f) {
  const Fp12<C> a = power_of_seed(f) * f.conjugate(), b = power_of_seed(a) * a.conjugate();
  const Fp12<C> c = power_of_seed(b) * frobenius(b);
  const Fp12<C> d = power_of_seed(power_of_seed(c)) * frobenius(frobenius(c)) * c.conjugate();
  return d * f.cyclotomic_squared() * f;
}

// in: f != 0
template <class C>
Fp12<C> final_exponentiation(const Fp12<C>& f) {
  const Fp12<C> g = f.conjugate() * f.inverse(), easy = frobenius(frobenius(g)) * g;  // f^((p^6 - 1)(p^2 + 1))
  if constexpr (C::family == Family::bn)
    return hard_part_bn(easy);
  else
    return hard_part_bls12(easy);
}

}  // namespace pinzk::pairing

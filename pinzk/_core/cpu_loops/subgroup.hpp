// SPDX-License-Identifier: Apache-2.0
// Whether a point of a curve has order r, by an endomorphism instead of a product by r: two to five times cheaper.
//
// Each endomorphism is fixed by its eigenvalue on the subgroup, so its constants are read off the image of the generator. A
// point passes just when a combination of endomorphisms kills it that kills the subgroup; beyond the subgroup it kills
// nothing, because its degree shares only r with the order of the curve (tests/test_points.py, test_pairing.py). M. Scott,
// eprint 2021/1130; Y. El Housni, A. Guillevic and T. Piellard, eprint 2022/352.
#pragma once
#include <type_traits>

#include "bls12_381.cuh"
#include "bn254.cuh"

namespace pinzk::cpu {

enum class Family { other, bn, bls12 };

// family and seed z (absolute value); from the sources named in bn254.cuh and bls12_381.cuh
template <class Curve>
struct FamilyOf {
  static constexpr Family family = Family::other;
};
template <class Machine>
struct FamilyOf<Bn254On<Machine>> {
  static constexpr Family family = Family::bn;
  static constexpr u64 seed = 4965661367192848881u;
};
template <class Machine>
struct FamilyOf<Bls12_381On<Machine>> {
  static constexpr Family family = Family::bls12;
  static constexpr u64 seed = 0xd201000000010000u;  // z is negative
};

template <class P, class M>
Field<P, M> conjugate(const Field<P, M>& x) {
  return x;
}
template <class F>
Fp2<F> conjugate(const Fp2<F>& x) {
  return x.conjugate();
}

// (x, y) -> (cx conj(x), cy conj(y)): multiplication by a cube root of unity on G1, the untwisted Frobenius map psi on G2
template <class F>
struct Endomorphism {
  F cx, cy;

  // the one that takes g to `image`
  Endomorphism(const Affine<F>& g, const Affine<F>& image)
      : cx(image.x * conjugate(g.x).inverse()), cy(image.y * conjugate(g.y).inverse()) {}
  Affine<F> operator()(const Affine<F>& p) const { return {cx * conjugate(p.x), cy * conjugate(p.y)}; }
};

template <class Curve, bool second>
struct Subgroup {
  using G = std::conditional_t<second, typename Curve::G2, typename Curve::G1>;
  using F = typename G::F;
  using Point = Affine<F>;
  using Sum = Xyzz<F>;

  // in: p on the curve
  static bool contains(const Point& p) {
    constexpr Family family = FamilyOf<Curve>::family;
    if constexpr (family == Family::other) {
      return Sum::from(p).times_vartime(Curve::Fr::modulus).is_infinity();
    } else if constexpr (family == Family::bn && !second) {
      return true;  // the curve has r points
    } else {
      constexpr Limbs<1> z{{FamilyOf<Curve>::seed}};
      // psi acts as p mod r: 6 z^2 (bn), z (bls12); the cube root of unity as -z^2 (bls12)
      static const Endomorphism<F> phi(G::generator(), [&] {
        Sum s = Sum::from(G::generator()).times_vartime(z);
        if constexpr (family == Family::bn) return s.times_vartime(z).times_vartime(Limbs<1>{{6}}).to_affine();
        if constexpr (!second) s = s.times_vartime(z);
        return (-s).to_affine();
      }());
      Sum s = Sum::from(p).times_vartime(z);
      if constexpr (family == Family::bn) {  // (6 z + 2) p + psi(p) - psi^2(p) + psi^3(p) = 0
        s = s.times_vartime(Limbs<1>{{3}});
        s.add(p);
        s = s.doubled();
        const Point p1 = phi(p), p2 = phi(p1), p3 = phi(p2);
        s.add(p1);
        s.add(-p2);
        s.add(p3);
      } else {  // G1: z^2 p + phi(p) = 0; G2: -z p + psi(p) = 0
        if constexpr (!second) s = s.times_vartime(z);
        s.add(phi(p));
      }
      return s.is_infinity();
    }
  }
};

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// A curve small enough to test every case of the templates: 97 points over F_79, and 97 points over F_79^2. For tests only.
//
// y^2 = x^3 + 3 over F_79 has prime order 97; y^2 = x^3 + 2u over F_79^2 has order 63 * 97. 97 - 1 = 2^5 * 3.
#pragma once
#include "curve.cuh"

namespace pinzk {

template <class Machine>
struct ToyOn {
  struct FrParams {
    static constexpr int N = 4;  // scalars are four words wide on every curve
    static constexpr Limbs<N> modulus = hex<N>("61");
    static constexpr u64 generator = 5;
  };
  struct FpParams {
    static constexpr int N = 1;
    static constexpr Limbs<N> modulus = hex<N>("4f");
    static constexpr u64 generator = 3;
  };
  using Fr = Field<FrParams, Machine>;
  using Fp = Field<FpParams, Machine>;
  struct G1 {
    using F = Fp;
    static constexpr F b() { return F::constant(3); }
    static constexpr Affine<F> generator() { return {F::constant(1), F::constant(2)}; }
  };
  struct G2 {
    using F = Fp2<Fp>;
    static constexpr F b() { return {Fp::zero(), Fp::constant(2)}; }
    static constexpr Affine<F> generator() { return {{Fp::zero(), Fp::constant(16)}, {Fp::constant(54), Fp::constant(25)}}; }
  };
};
using Toy = ToyOn<Portable>;

}  // namespace pinzk

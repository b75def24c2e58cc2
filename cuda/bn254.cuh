// SPDX-License-Identifier: Apache-2.0
// BN254 (alt_bn128, "bn128" to snarkjs): parameters only. Source: EIP-196, EIP-197.
#pragma once
#include "curve.cuh"

namespace pinzk {

template <class Machine>
struct Bn254On {
  struct FrParams {
    static constexpr int N = 4;
    static constexpr Limbs<N> modulus = hex<N>("30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001");
    static constexpr u64 generator = 5;
  };
  struct FpParams {
    static constexpr int N = 4;
    static constexpr Limbs<N> modulus = hex<N>("30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47");
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
    // 3 / (9 + u)
    static constexpr F b() {
      return {Fp::constant(hex<4>("2b149d40ceb8aaae81be18991be06ac3b5b4c5e559dbefa33267e6dc24a138e5")),
              Fp::constant(hex<4>("009713b03af0fed4cd2cafadeed8fdf4a74fa084e52d1852e4a2bd0685c315d2"))};
    }
    static constexpr Affine<F> generator() {
      return {{Fp::constant(hex<4>("1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed")),
               Fp::constant(hex<4>("198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2"))},
              {Fp::constant(hex<4>("12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa")),
               Fp::constant(hex<4>("090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b"))}};
    }
  };
};
using Bn254 = Bn254On<Portable>;

}  // namespace pinzk

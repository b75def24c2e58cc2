// SPDX-License-Identifier: Apache-2.0
// BLS12-381: parameters only. Source: draft-irtf-cfrg-pairing-friendly-curves, section 4.2.1.
#pragma once
#include "curve.cuh"

namespace pinzk {

template <class Machine>
struct Bls12_381On {
  struct FrParams {
    static constexpr int N = 4;
    static constexpr Limbs<N> modulus = hex<N>("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001");
    static constexpr u64 generator = 7;
  };
  struct FpParams {
    static constexpr int N = 6;
    static constexpr Limbs<N> modulus =
        hex<N>("1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab");
    static constexpr u64 generator = 2;
  };
  using Fr = Field<FrParams, Machine>;
  using Fp = Field<FpParams, Machine>;
  struct G1 {
    using F = Fp;
    static constexpr F b() { return F::constant(4); }
    static constexpr Affine<F> generator() {
      return {F::constant(hex<6>(
                  "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb")),
              F::constant(hex<6>(
                  "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1"))};
    }
  };
  struct G2 {
    using F = Fp2<Fp>;
    // 4 (1 + u)
    static constexpr F b() { return {Fp::constant(4), Fp::constant(4)}; }
    static constexpr Affine<F> generator() {
      return {
          {Fp::constant(
               hex<6>("024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8")),
           Fp::constant(
               hex<6>("13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"))},
          {Fp::constant(
               hex<6>("0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801")),
           Fp::constant(
               hex<6>("0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be"))}};
    }
  };
};
using Bls12_381 = Bls12_381On<Portable>;

}  // namespace pinzk

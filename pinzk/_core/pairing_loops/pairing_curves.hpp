// SPDX-License-Identifier: Apache-2.0
// What a pairing needs to know of a curve beyond its fields and groups: the seed, the tower and the kind of twist.
//
// Sources: EIP-197 (BN254), draft-irtf-cfrg-pairing-friendly-curves, section 4.2.1 (BLS12-381). Everything else (Frobenius
// constants, loop digits) is derived in pairing_constants.hpp.
#pragma once
#include "bls12_381.cuh"
#include "bn254.cuh"

namespace pinzk::pairing {

enum class Family { bn, bls12 };
// D: y^2 = x^3 + b / xi, points lift to (x w^2, y w^3). M: y^2 = x^3 + b xi, points lift to (x / w^2, y / w^3).
enum class Twist { d, m };

template <class Machine>
struct Bn254Pairing {
  using Curve = Bn254On<Machine>;
  static constexpr Family family = Family::bn;
  static constexpr Twist twist = Twist::d;
  static constexpr u64 seed = 4965661367192848881u;  // absolute value
  static constexpr bool seed_negative = false;
  static constexpr int xi_real = 9;  // xi = 9 + u is neither a square nor a cube
};

template <class Machine>
struct Bls12_381Pairing {
  using Curve = Bls12_381On<Machine>;
  static constexpr Family family = Family::bls12;
  static constexpr Twist twist = Twist::m;
  static constexpr u64 seed = 0xd201000000010000u;
  static constexpr bool seed_negative = true;
  static constexpr int xi_real = 1;  // xi = 1 + u
};

}  // namespace pinzk::pairing

// SPDX-License-Identifier: Apache-2.0
// PairingOps: the pairing of one curve behind a table of functions, so that Cython names no template. Host only.
//
// Points are affine rows of words as everywhere; values in the target group are twelve elements of Fp, Montgomery, in the
// order of memory of Fp12. Points must be on their curves with reduced coordinates; subgroups are told where it says so.
#pragma once
#include <cstddef>
#include <cstdint>

#include "adx.hpp"
#include "pairing_loops/final_exponentiation.hpp"
#include "pairing_loops/miller.hpp"

namespace pinzk::pairing {

using word = std::uint64_t;  // numpy's uint64

enum class Verdict { valid = 0, b_not_in_subgroup = 1, equation_fails = 2 };

// what of a Groth16 verification key does not change from proof to proof
struct Groth16Key {
  virtual ~Groth16Key() = default;
  // e(a, b) = e(alpha, beta) e(inputs, gamma) e(c, delta), and b in G2; a and c are the caller's to check
  virtual Verdict check(const word* a, const word* b, const word* c, const word* inputs) const = 0;
  virtual void alpha_beta(word* out) const = 0;
};

struct PairingOps {
  virtual ~PairingOps() = default;
  // product of e(g1[i], g2[i])
  virtual void product(const word* g1, const word* g2, size_t n, word* out) const = 0;
  virtual bool is_one(const word* value) const = 0;
  virtual bool in_g2(const word* point) const = 0;
  // alpha in G1; beta, gamma, delta in G2. The caller owns the result.
  virtual Groth16Key* prepare(const word* alpha, const word* beta, const word* gamma, const word* delta) const = 0;
};

template <class C>
struct PairingOpsOf final : PairingOps {
  using P1 = Affine<typename C::Curve::G1::F>;
  using P2 = Affine<typename C::Curve::G2::F>;
  using Gt = Fp12<C>;

  template <class T>
  static const T* rows(const word* p) {
    return reinterpret_cast<const T*>(p);
  }

  static Gt pairing_product(const P1* p, const P2* q, size_t n) {
    std::vector<Prepared<C>> prepared;
    std::vector<Pair<C>> pairs;
    prepared.reserve(n);
    for (size_t i = 0; i < n; i++) pairs.push_back({p[i], &prepared.emplace_back(q[i])});
    return final_exponentiation(miller_loop<C>(std::move(pairs)));
  }

  struct Key final : Groth16Key {
    Gt target;
    Prepared<C> gamma, delta;

    Key(const P1& a, const P2& b, const P2& g, const P2& d) : target(pairing_product(&a, &b, 1)), gamma(g), delta(d) {}

    Verdict check(const word* a, const word* b, const word* c, const word* inputs) const override {
      const Prepared<C> live(*rows<P2>(b));
      if (!live.in_subgroup) return Verdict::b_not_in_subgroup;
      const Gt f = miller_loop<C>({{*rows<P1>(a), &live}, {-*rows<P1>(inputs), &gamma}, {-*rows<P1>(c), &delta}});
      return final_exponentiation(f) == target ? Verdict::valid : Verdict::equation_fails;
    }
    void alpha_beta(word* out) const override { *reinterpret_cast<Gt*>(out) = target; }
  };

  void product(const word* g1, const word* g2, size_t n, word* out) const override {
    *reinterpret_cast<Gt*>(out) = pairing_product(rows<P1>(g1), rows<P2>(g2), n);
  }
  bool is_one(const word* value) const override { return *rows<Gt>(value) == Gt::one(); }
  bool in_g2(const word* point) const override { return Prepared<C>(*rows<P2>(point)).in_subgroup; }
  Groth16Key* prepare(const word* alpha, const word* beta, const word* gamma, const word* delta) const override {
    return new Key(*rows<P1>(alpha), *rows<P2>(beta), *rows<P2>(gamma), *rows<P2>(delta));
  }
};

// compiled for each machine type, as the loops are (cpu_loops/choose_ops.hpp); C is a template of pairing_curves.hpp
template <template <class> class C>
const PairingOps* ops_for_this_machine() {
#if defined(__x86_64__)
  if (Adx::available()) {
    static const PairingOpsOf<C<Adx>> adx;
    return &adx;
  }
#endif
  static const PairingOpsOf<C<Host>> host;
  return &host;
}
inline const PairingOps* bn254_pairing() { return ops_for_this_machine<Bn254Pairing>(); }
inline const PairingOps* bls12_381_pairing() { return ops_for_this_machine<Bls12_381Pairing>(); }

}  // namespace pinzk::pairing

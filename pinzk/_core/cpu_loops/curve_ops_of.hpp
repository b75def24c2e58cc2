// SPDX-License-Identifier: Apache-2.0
// The table of one curve: CurveOps over the loop templates. Included by one .cpp per curve.
#pragma once
#include "curve_ops.hpp"
#include "elements.hpp"
#include "encoding.hpp"
#include "msm.hpp"
#include "ntt.hpp"
#include "points.hpp"
#include "sparse.hpp"

namespace pinzk::cpu {

template <class Curve>
struct CurveOpsOf final : CurveOps {
  using Fr = typename Curve::Fr;
  using Fp = typename Curve::Fp;
  using G1 = typename Curve::G1;
  using G2 = typename Curve::G2;

  void to_montgomery(Which f, const word* in, word* out, size_t n, const Job& job) const override {
    f == Which::Fr ? cpu::to_montgomery<Fr>(in, out, n, job) : cpu::to_montgomery<Fp>(in, out, n, job);
  }
  void from_montgomery(Which f, const word* in, word* out, size_t n, const Job& job) const override {
    f == Which::Fr ? cpu::from_montgomery<Fr>(in, out, n, job) : cpu::from_montgomery<Fp>(in, out, n, job);
  }
  size_t first_unreduced(Which f, const word* in, size_t n, const Job& job) const override {
    return f == Which::Fr ? cpu::first_unreduced<Fr>(in, n, job) : cpu::first_unreduced<Fp>(in, n, job);
  }
  void multiply(Which f, const word* a, const word* b, word* out, size_t n, const Job& job) const override {
    f == Which::Fr ? cpu::multiply<Fr>(a, b, out, n, job) : cpu::multiply<Fp>(a, b, out, n, job);
  }
  void multiply_subtract(const word* a, const word* b, const word* c, word* out, size_t n, const Job& job) const override {
    cpu::multiply_subtract<Fr>(a, b, c, out, n, job);
  }
  void powers(const word* first, const word* base, word* out, size_t n, const Job& job) const override {
    cpu::powers<Fr>(first, base, out, n, job);
  }
  void invert(const word* in, word* out, size_t n, const Job& job) const override { cpu::invert<Fr>(in, out, n, job); }

  void dif(word* data, int log_n, const word* twiddles, const Job& job) const override {
    cpu::transform<Order::dif, Fr>(data, log_n, twiddles, job);
  }
  void dit(word* data, int log_n, const word* twiddles, const Job& job) const override {
    cpu::transform<Order::dit, Fr>(data, log_n, twiddles, job);
  }
  void bit_reverse(word* data, int log_n, const Job& job) const override { cpu::bit_reverse<Fr>(data, log_n, job); }

  BadPoint first_bad_point(Group g, const word* points, size_t n, Check check, const Job& job) const override {
    return g == Group::G1 ? cpu::first_bad_point<Curve, false>(points, n, check, job)
                          : cpu::first_bad_point<Curve, true>(points, n, check, job);
  }
  void msm(Group g, const word* bases, const word* scalars, size_t n, word* out, const Job& job) const override {
    g == Group::G1 ? cpu::msm<G1, Fr>(bases, scalars, n, out, job) : cpu::msm<G2, Fr>(bases, scalars, n, out, job);
  }
  void weighted_sum(Group g, const word* sums, size_t sets, int width, word* out) const override {
    g == Group::G1 ? cpu::weighted_sum<typename G1::F>(sums, sets, width, out)
                   : cpu::weighted_sum<typename G2::F>(sums, sets, width, out);
  }
  void fixed_base(Group g, const word* base, const word* scalars, size_t n, word* out, const Job& job) const override {
    g == Group::G1 ? cpu::fixed_base<G1, Fr>(base, scalars, n, out, job)
                   : cpu::fixed_base<G2, Fr>(base, scalars, n, out, job);
  }
  void generator(Group g, word* out) const override {
    if (g == Group::G1)
      *rows<Affine<typename G1::F>>(out) = G1::generator();
    else
      *rows<Affine<typename G2::F>>(out) = G2::generator();
  }

  BadPoint decode_points(Group g, word* points, size_t n, const Job& job) const override {
    return g == Group::G1 ? cpu::decode_points<typename G1::F, Fp>(points, n, job)
                          : cpu::decode_points<typename G2::F, Fp>(points, n, job);
  }
  void encode_points(Group g, const word* points, word* out, size_t n, const Job& job) const override {
    g == Group::G1 ? cpu::encode_points<typename G1::F, Fp>(points, out, n, job)
                   : cpu::encode_points<typename G2::F, Fp>(points, out, n, job);
  }

  void sparse_rows(const word* indptr, const std::uint32_t* indices, const word* values, size_t n, const word* witness,
                   word* out, const Job& job) const override {
    cpu::sparse_rows<Fr>(indptr, indices, values, n, witness, out, job);
  }
};

}  // namespace pinzk::cpu

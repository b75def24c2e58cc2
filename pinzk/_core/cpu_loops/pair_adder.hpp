// SPDX-License-Identifier: Apache-2.0
// PairAdder: many independent affine additions that share one inversion (docs/arithmetic.md, section 7).
//
// An addition costs 1 product for the slope, 2 for the sum, 3 for its part of the inversion: six, where a sum in XYZZ form
// costs ten. Complete: infinity, equal and opposite points are given a harmless denominator and their own result.
#pragma once
#include <cstdint>
#include <vector>

#include "lane_adder.hpp"
#include "term.hpp"

namespace pinzk::cpu {

template <class F>
class PairAdder {
 public:
  // out[i] = terms[2i] + terms[2i + 1], i < pairs; no term is none; no point of `terms` lies in out
  void add(const Term<F>* terms, size_t pairs, Affine<F>* out) {
    if constexpr (has_lanes<F>) {
      if (pairs >= LaneAdder<F>::least_pairs && lanes_available()) {
        add_by_lanes(terms, pairs, out);
        return;
      }
    }
    add_one_by_one(terms, pairs, out);
  }

 private:
  void add_by_lanes(const Term<F>* terms, size_t pairs, Affine<F>* out) {
    special_.clear();
    lanes_.add(terms, pairs, out, special_);
    if (special_.empty()) return;
    std::vector<Term<F>> rest;
    for (const auto i : special_) rest.insert(rest.end(), {terms[2 * i], terms[2 * i + 1]});
    std::vector<Affine<F>> sums(special_.size());
    add_one_by_one(rest.data(), sums.size(), sums.data());
    for (size_t i = 0; i < sums.size(); i++) out[special_[i]] = sums[i];
  }

  void add_one_by_one(const Term<F>* terms, size_t pairs, Affine<F>* out) {
    if (pairs == 0) return;
    below_.resize(pairs);
    before_.resize(pairs);
    F running = F::one();
    for (size_t i = 0; i < pairs; i++) {
      if (i + ahead < pairs) terms[2 * (i + ahead)].prefetch(), terms[2 * (i + ahead) + 1].prefetch();
      below_[i] = denominator(terms[2 * i], terms[2 * i + 1]);
      before_[i] = running;
      running *= below_[i];
    }
    running = running.inverse();
    for (size_t i = pairs; i-- > 0;) {
      if (i >= ahead) terms[2 * (i - ahead)].prefetch(), terms[2 * (i - ahead) + 1].prefetch();
      out[i] = sum(terms[2 * i], terms[2 * i + 1], running * before_[i]);
      running *= below_[i];
    }
  }

  static constexpr size_t ahead = 8;

  // of the slope of a + b; one where there is no slope
  static F denominator(const Term<F>& a, const Term<F>& b) {
    const Affine<F>&p = a.point(), &q = b.point();
    const F d = q.x - p.x;
    if (__builtin_expect(d.is_zero() || p.x.is_zero() || q.x.is_zero(), 0)) {
      if (p.is_infinity() || q.is_infinity()) return F::one();
      if (!d.is_zero()) return d;
      return a.y() == b.y() && !p.y.is_zero() ? a.y().doubled() : F::one();
    }
    return d;
  }

  static Affine<F> sum(const Term<F>& a, const Term<F>& b, const F& inverse) {
    const Affine<F>&p = a.point(), &q = b.point();
    F rise = b.y() - a.y();
    if (__builtin_expect(p.x == q.x || p.x.is_zero() || q.x.is_zero(), 0)) {
      if (p.is_infinity()) return b.value();
      if (q.is_infinity()) return a.value();
      if (p.x == q.x) {
        if (!rise.is_zero() || p.y.is_zero()) return Affine<F>::infinity();
        const F xx = p.x.squared();
        rise = xx.doubled() + xx;
      }
    }
    const F slope = rise * inverse, x = slope.squared() - p.x - q.x;
    return {x, slope * (p.x - x) - a.y()};
  }

  std::conditional_t<has_lanes<F>, LaneAdder<F>, char> lanes_;
  std::vector<std::uint32_t> special_;
  std::vector<F> below_, before_;  // denominators, and the product of all before each
};

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// PairAdder: many independent affine additions that share one inversion (docs/arithmetic.md, section 7).
//
// An addition costs 1 product for the slope, 2 for the sum, 3 for its part of the inversion: six, where a sum in XYZZ form
// costs ten. Complete: infinity, equal and opposite points are given a harmless denominator and their own result.
#pragma once
#include <cstdint>
#include <vector>

#include "curve.cuh"

namespace pinzk::cpu {

// A point somewhere in memory, or minus that point (the sign stands in the address's lowest bit); or none, infinity.
template <class F>
class Term {
 public:
  Term() = default;
  Term(const Affine<F>* point, bool negative = false) : bits_(reinterpret_cast<std::uintptr_t>(point) | negative) {}
  explicit operator bool() const { return bits_ != 0; }
  const Affine<F>& point() const { return *reinterpret_cast<const Affine<F>*>(bits_ & ~std::uintptr_t(1)); }
  bool negative() const { return bits_ & 1; }
  // without a branch: signs are as good as random
  F y() const {
    const F choice[2] = {point().y, -point().y};
    return choice[negative()];
  }
  void prefetch() const {
    const char* p = reinterpret_cast<const char*>(&point());
    for (size_t at = 0; at < sizeof(Affine<F>); at += 64) __builtin_prefetch(p + at);
    __builtin_prefetch(p + sizeof(Affine<F>) - 1);
  }
  Affine<F> value() const { return bits_ ? Affine<F>{point().x, y()} : Affine<F>::infinity(); }

 private:
  std::uintptr_t bits_ = 0;
};

template <class F>
class PairAdder {
 public:
  // out[i] = terms[2i] + terms[2i + 1], i < pairs; no term is none; no point of `terms` lies in out
  void add(const Term<F>* terms, size_t pairs, Affine<F>* out) {
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

 private:
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

  std::vector<F> below_, before_;  // denominators, and the product of all before each
};

}  // namespace pinzk::cpu

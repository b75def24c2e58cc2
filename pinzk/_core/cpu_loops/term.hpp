// SPDX-License-Identifier: Apache-2.0
// Term<F>: one summand of a sum of points, eight bytes.
#pragma once
#include <cstdint>

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

}  // namespace pinzk::cpu

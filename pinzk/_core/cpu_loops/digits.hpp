// SPDX-License-Identifier: Apache-2.0
// Signed digits of scalars, window by window, and the list of points that have any (docs/arithmetic.md, section 7).
//
// A scalar above r/2 counts as minus its complement. With an offset H that has the top bit of every window set, the digits
// of k + H less those top bits are k's signed digits, in [-2^(c-1), 2^(c-1)): no carry runs from window to window.
#pragma once
#include <cstdint>
#include <vector>

#include "elements.hpp"

namespace pinzk::cpu {

template <class Fr>
struct Windows {
  static constexpr int total_bits = Fr::bits;  // magnitude <= r/2, and a sign
  static_assert(bits(Fr::modulus, Fr::bits - 4, 4) < 15 && Fr::bits > 4, "r/2 + H must fit total_bits");
  static constexpr int min_width = 4;    // what that assertion supposes
  static constexpr int narrow_bits = 2;  // a magnitude below 2^narrow_bits has its only digit in window 0

  // `count` windows of nearly equal width
  explicit Windows(int windows) : count(windows), offset{} {
    for (int w = 0; w < count; w++) {
      const int top = start(w) + width(w) - 1;
      offset.word[top / 64] |= u64(1) << (top % 64);
    }
  }

  int start(int w) const { return w * total_bits / count; }
  int width(int w) const { return start(w + 1) - start(w); }
  size_t buckets(int w) const { return size_t(1) << (width(w) - 1); }

  // The cheapest number of windows for n wide scalars, when a point costs `per_point` products in a window and a bucket
  // `per_bucket`.
  static int best_count(size_t n, double per_point, double per_bucket, int max_width) {
    int best = 1;
    double least = 0;
    for (int w = (total_bits + max_width - 1) / max_width; w * min_width <= total_bits; w++) {
      const Windows windows(w);
      double cost = 0;
      for (int i = 0; i < w; i++) cost += per_point * n + per_bucket * windows.buckets(i);
      if (least == 0 || cost < least) best = w, least = cost;
    }
    return best;
  }

  int count;
  Limbs<Fr::N> offset;
};

template <class Fr>
struct Magnitude {
  Limbs<Fr::N> value;
  bool negative;

  // k < r canonical
  explicit Magnitude(const Limbs<Fr::N>& k) : value(k), negative(false) {
    const Limbs<Fr::N> other = minus(Fr::modulus, k);
    if (less(other, k)) value = other, negative = true;
  }
  bool is_narrow() const {
    u64 high = value.word[0] >> Windows<Fr>::narrow_bits;
    for (int i = 1; i < Fr::N; i++) high |= value.word[i];
    return high == 0;
  }
};

// A scalar's magnitude with the offset added: its digits can be read.
template <class Fr>
struct OffsetScalar : Magnitude<Fr> {
  // k < r canonical
  OffsetScalar(const Limbs<Fr::N>& k, const Windows<Fr>& windows) : Magnitude<Fr>(k) {
    u64 carry = 0;
    for (int j = 0; j < Fr::N; j++) this->value.word[j] = add_carry(this->value.word[j], windows.offset.word[j], carry);
  }
  int digit(const Windows<Fr>& windows, int w) const {
    const int width = windows.width(w);
    const int d = static_cast<int>(bits(this->value, windows.start(w), width)) - (1 << (width - 1));
    return this->negative ? -d : d;
  }
};

// Indices of the points that count: scalar not zero, base not infinity. Those with wide scalars first.
struct Active {
  std::vector<std::uint32_t> index;
  size_t wide = 0;
};

template <class F, class Fr>
Active find_active(const Affine<F>* bases, const Limbs<Fr::N>* scalars, size_t n, const Job& job) {
  enum Kind : char { none, narrow, wide };
  auto kind = [=](size_t i) {
    if (is_zero(scalars[i]) || bases[i].is_infinity()) return none;
    return Magnitude<Fr>(scalars[i]).is_narrow() ? narrow : wide;
  };
  const size_t grain = element_grain, chunks = (n + grain - 1) / grain;
  std::vector<char> kinds(n);
  std::vector<size_t> wide_at(chunks + 1), narrow_at(chunks + 1);
  parallel_for(n, grain, job, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) {
      kinds[i] = kind(i);
      wide_at[begin / grain + 1] += kinds[i] == wide;
      narrow_at[begin / grain + 1] += kinds[i] == narrow;
    }
  });
  for (size_t c = 0; c < chunks; c++) wide_at[c + 1] += wide_at[c];
  narrow_at[0] = wide_at[chunks];
  for (size_t c = 0; c < chunks; c++) narrow_at[c + 1] += narrow_at[c];
  Active active{std::vector<std::uint32_t>(narrow_at[chunks]), wide_at[chunks]};
  parallel_for(n, grain, job, [&](size_t begin, size_t end, int) {
    size_t w = wide_at[begin / grain], s = narrow_at[begin / grain];
    for (size_t i = begin; i < end; i++)
      if (kinds[i] != none) active.index[kinds[i] == wide ? w++ : s++] = static_cast<std::uint32_t>(i);
  });
  return active;
}

}  // namespace pinzk::cpu

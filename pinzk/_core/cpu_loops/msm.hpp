// SPDX-License-Identifier: Apache-2.0
// Multi-scalar multiplication by signed buckets (Pippenger).
#pragma once
#include "points.hpp"

namespace pinzk::cpu {

// few points: one shared chain of doublings
template <class F, int M>
Xyzz<F> msm_small(const Affine<F>* bases, const Limbs<M>* scalars, size_t n) {
  int top = 0;
  for (size_t i = 0; i < n; i++) top = std::max(top, bit_length(scalars[i]));
  Xyzz<F> sum = Xyzz<F>::infinity();
  for (int k = top - 1; k >= 0; k--) {
    sum = sum.doubled();
    for (size_t i = 0; i < n; i++)
      if (bit(scalars[i], k)) sum.add(bases[i]);
  }
  return sum;
}

template <class G, class Fr>
void msm(const word* bases, const word* scalars, size_t n, word* out, const Job& job) {
  using F = typename G::F;
  const auto* p = rows<Affine<F>>(bases);
  const auto* k = rows<Limbs<Fr::N>>(scalars);
  auto* result = rows<Affine<F>>(out);
  if (n < 32) {
    *result = msm_small(p, k, n).to_affine();
    return;
  }
  int c = 3;
  while (c < 16 && (size_t(1) << (c + 3)) < n) c++;
  const int windows = Fr::bits / c + 1;  // the last one takes the carry
  const int half = 1 << (c - 1);
  std::vector<int> digit(windows * n);  // in (-half, half]
  parallel_for(n, element_grain, job, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) {
      int carry = 0;
      for (int w = 0; w < windows; w++) {
        const int d = static_cast<int>(bits(k[i], w * c, c)) + carry;
        carry = d > half;
        digit[w * n + i] = d - (carry << c);
      }
    }
  });
  std::vector<Xyzz<F>> sums(windows);
  parallel_for(windows, 1, job, [&](size_t w, size_t, int) {
    std::vector<Xyzz<F>> bucket(half + 1, Xyzz<F>::infinity());
    for (size_t i = 0; i < n; i++) {
      const int d = digit[w * n + i];
      if (d > 0) bucket[d].add(p[i]);
      if (d < 0) bucket[-d].add(-p[i]);
    }
    Xyzz<F> running = Xyzz<F>::infinity(), sum = Xyzz<F>::infinity();
    for (size_t d = bucket.size() - 1; d > 0; d--) {
      running.add(bucket[d]);
      sum.add(running);
    }
    sums[w] = sum;
  });
  Xyzz<F> total = sums[windows - 1];
  for (int w = windows - 2; w >= 0; w--) {
    for (int i = 0; i < c; i++) total = total.doubled();
    total.add(sums[w]);
  }
  *result = total.to_affine();
}

}  // namespace pinzk::cpu

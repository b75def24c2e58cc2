// SPDX-License-Identifier: Apache-2.0
// Number-theoretic transforms over Fr: DIF (natural in, bit-reversed out) and DIT (the reverse), in place.
//
// A transform then a pointwise step then the inverse never permutes. Level by level, radix 2; the twiddle of butterfly j at
// span `len` is w^(j n / (2 len)).
#pragma once
#include "elements.hpp"

namespace pinzk::cpu {

template <class F>
void dif(word* data, int log_n, const word* twiddles, const Job& job) {
  auto* x = rows<F>(data);
  const auto* w = rows<F>(twiddles);
  const size_t n = size_t(1) << log_n;
  for (size_t len = n / 2, step = 1; len >= 1; len /= 2, step *= 2) {
    parallel_for(n / 2, element_grain, job, [=](size_t begin, size_t end, int) {
      for (size_t k = begin; k < end; k++) {
        const size_t j = k & (len - 1), i = (k - j) * 2 + j;
        const F a = x[i], b = x[i + len];
        x[i] = a + b;
        x[i + len] = (a - b) * w[j * step];
      }
    });
  }
}

template <class F>
void dit(word* data, int log_n, const word* twiddles, const Job& job) {
  auto* x = rows<F>(data);
  const auto* w = rows<F>(twiddles);
  const size_t n = size_t(1) << log_n;
  for (size_t len = 1, step = n / 2; len < n; len *= 2, step /= 2) {
    parallel_for(n / 2, element_grain, job, [=](size_t begin, size_t end, int) {
      for (size_t k = begin; k < end; k++) {
        const size_t j = k & (len - 1), i = (k - j) * 2 + j;
        const F a = x[i], b = x[i + len] * w[j * step];
        x[i] = a + b;
        x[i + len] = a - b;
      }
    });
  }
}

template <class F>
void bit_reverse(word* data, int log_n, const Job& job) {
  auto* x = rows<F>(data);
  parallel_for(size_t(1) << log_n, element_grain, job, [=](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) {
      size_t j = 0;
      for (int k = 0; k < log_n; k++) j |= (i >> k & 1) << (log_n - 1 - k);
      if (i < j) std::swap(x[i], x[j]);  // each pair belongs to its smaller index
    }
  });
}

}  // namespace pinzk::cpu

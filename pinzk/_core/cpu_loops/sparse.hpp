// SPDX-License-Identifier: Apache-2.0
// Sparse constraint rows against a canonical witness: A w, B w, C w.
#pragma once
#include "elements.hpp"

namespace pinzk::cpu {

template <class F>
void sparse_rows(const word* indptr, const std::uint32_t* indices, const word* values, size_t n, const word* witness,
                 word* out, const Job& job) {
  const auto* c = rows<F>(values);
  const auto* w = rows<F>(witness);  // canonical integers: the product c R^2 * w / R is (c w) R
  auto* y = rows<F>(out);
  parallel_for(n, element_grain / 4, job, [=](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) {
      F sum = F::zero();
      for (word k = indptr[i]; k < indptr[i + 1]; k++) sum += c[k] * w[indices[k]];
      y[i] = sum;
    }
  });
}

}  // namespace pinzk::cpu

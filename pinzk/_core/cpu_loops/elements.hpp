// SPDX-License-Identifier: Apache-2.0
// Loops over field elements: conversions, range checks, products, powers, batch inversion.
#pragma once
#include "curve_ops.hpp"
#include "field.cuh"

namespace pinzk::cpu {

constexpr size_t element_grain = 1 << 14;  // about half a millisecond of products

// rows of words as elements; the layouts are the same bytes
template <class T>
const T* rows(const word* p) {
  static_assert(sizeof(T) % sizeof(word) == 0);
  return reinterpret_cast<const T*>(p);
}
template <class T>
T* rows(word* p) {
  return reinterpret_cast<T*>(p);
}

template <class F>
void to_montgomery(const word* in, word* out, size_t n, const Job& job) {
  const auto* x = rows<Limbs<F::N>>(in);
  auto* y = rows<F>(out);
  parallel_for(n, element_grain, job, [=](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) y[i] = F::from_canonical(x[i]);
  });
}

template <class F>
void from_montgomery(const word* in, word* out, size_t n, const Job& job) {
  const auto* x = rows<F>(in);
  auto* y = rows<Limbs<F::N>>(out);
  parallel_for(n, element_grain, job, [=](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) y[i] = x[i].to_canonical();
  });
}

// the smallest index in [0, n) for which bad(i), n if there is none
template <class Bad>
size_t first_index(size_t n, size_t grain, const Job& job, Bad bad) {
  std::atomic<size_t> first{n};
  parallel_for(n, grain, job, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end && i < first.load(std::memory_order_relaxed); i++) {
      if (!bad(i)) continue;
      size_t seen = first.load();
      while (i < seen && !first.compare_exchange_weak(seen, i)) {
      }
      return;
    }
  });
  return first;
}

template <class F>
size_t first_unreduced(const word* in, size_t n, const Job& job) {
  const auto* x = rows<Limbs<F::N>>(in);
  return first_index(n, element_grain, job, [=](size_t i) { return !less(x[i], F::modulus); });
}

template <class F>
void multiply(const word* a, const word* b, word* out, size_t n, const Job& job) {
  const auto *x = rows<F>(a), *y = rows<F>(b);
  auto* z = rows<F>(out);
  parallel_for(n, element_grain, job, [=](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) z[i] = x[i] * y[i];
  });
}

template <class F>
void multiply_subtract(const word* a, const word* b, const word* c, word* out, size_t n, const Job& job) {
  const auto *x = rows<F>(a), *y = rows<F>(b), *w = rows<F>(c);
  auto* z = rows<F>(out);
  parallel_for(n, element_grain, job, [=](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++) z[i] = x[i] * y[i] - w[i];
  });
}

template <class F>
void powers(const word* first, const word* base, word* out, size_t n, const Job& job) {
  const F f = *rows<F>(first), b = *rows<F>(base);
  auto* y = rows<F>(out);
  parallel_for(n, element_grain, job, [=](size_t begin, size_t end, int) {
    F x = f * b.power_vartime(Limbs<1>{{begin}});
    for (size_t i = begin; i < end; i++, x *= b) y[i] = x;
  });
}

// Montgomery's trick over one chunk: a single inversion, three products an element. Zeros stay zero.
template <class F>
void batch_invert(const F* in, F* out, size_t n, std::vector<F>& scratch) {
  scratch.resize(n);
  F running = F::one();
  for (size_t i = 0; i < n; i++) {
    scratch[i] = running;
    if (!in[i].is_zero()) running *= in[i];
  }
  running = running.inverse();
  for (size_t i = n; i-- > 0;) {
    if (in[i].is_zero()) {
      out[i] = F::zero();
      continue;
    }
    const F x = in[i];
    out[i] = running * scratch[i];
    running *= x;
  }
}

template <class F>
void invert(const word* in, word* out, size_t n, const Job& job) {
  const auto* x = rows<F>(in);
  auto* y = rows<F>(out);
  parallel_for(n, element_grain, job, [=](size_t begin, size_t end, int) {
    std::vector<F> scratch;
    batch_invert(x + begin, y + begin, end - begin, scratch);
  });
}

}  // namespace pinzk::cpu

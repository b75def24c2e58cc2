// SPDX-License-Identifier: Apache-2.0
// Element-wise work on vectors over Fr: products, scaling, bit reversal, conversions. Bound by memory.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "elements.cuh"

using namespace pinzk;

// out = a b; out may be a or b
extern "C" __global__ void vec_mul(u64* out, const u64* a, const u64* b, const u64 n) {
  for (u64 i = first(); i < n; i += stride()) store(out + 4 * i, load(a + 4 * i) * load(b + 4 * i));
}

// out = a b - c; out may be any of them
extern "C" __global__ void vec_mul_sub(u64* out, const u64* a, const u64* b, const u64* c, const u64 n) {
  for (u64 i = first(); i < n; i += stride()) store(out + 4 * i, load(a + 4 * i) * load(b + 4 * i) - load(c + 4 * i));
}

// out = a b - k c; out may be any of them
extern "C" __global__ void vec_mul_sub_times(u64* out, const u64* a, const u64* b, const u64* c, const Fr k, const u64 n) {
  for (u64 i = first(); i < n; i += stride()) store(out + 4 * i, load(a + 4 * i) * load(b + 4 * i) - k * load(c + 4 * i));
}

// out = k x; out may be x
extern "C" __global__ void vec_times(u64* out, const u64* x, const Fr k, const u64 n) {
  for (u64 i = first(); i < n; i += stride()) store(out + 4 * i, k * load(x + 4 * i));
}

extern "C" __global__ void vec_zero(u64* out, const u64 n) {
  for (u64 i = first(); i < n; i += stride()) store(out + 4 * i, Fr::zero());
}

// x[i] *= factors[i mod m], m a power of two
extern "C" __global__ void vec_scale(u64* x, const u64* factors, const u64 m, const u64 n) {
  for (u64 i = first(); i < n; i += stride()) store(x + 4 * i, load(x + 4 * i) * load(factors + 4 * (i & (m - 1))));
}

// out[i] = c base^e(i): squares holds c, then base^(2^j); e(i) = i, or i bit-reversed in log_n bits where `reversed`
extern "C" __global__ void vec_powers(u64* out, const u64* squares, const int log_n, const u32 reversed) {
  for (u64 i = first(); i < u64(1) << log_n; i += stride()) {
    u64 e = reversed && log_n ? __brevll(i) >> (64 - log_n) : i;
    Fr x = load(squares);
    for (int j = 1; e; e >>= 1, j++)
      if (e & 1) x = x * load(squares + 4 * j);
    store(out + 4 * i, x);
  }
}

// x[i] *= low[e mod m] high[e / m], m = 2^log_low: with low[j] = c base^j and high[j] = base^(m j) that is c base^e.
// e is the index inside a vector of 2^log_n, bit-reversed where `reversed`
extern "C" __global__ void vec_scale_powers(u64* x, const u64* low, const u64* high, const int log_low, const int log_n,
                                            const u32 reversed, const u64 n) {
  const u64 mask = (u64(1) << log_n) - 1, low_mask = (u64(1) << log_low) - 1;
  for (u64 i = first(); i < n; i += stride()) {
    const u64 e = reversed && log_n ? __brevll(i & mask) >> (64 - log_n) : i & mask;
    const Fr factor = load(low + 4 * (e & low_mask)) * load(high + 4 * (e >> log_low));
    store(x + 4 * i, load(x + 4 * i) * factor);
  }
}

// out = in with the index of every element of a vector of 2^log_n bit-reversed; out is not in
extern "C" __global__ void vec_bit_reverse(u64* out, const u64* in, const int log_n, const u64 n) {
  const u64 mask = (u64(1) << log_n) - 1;
  for (u64 i = first(); i < n; i += stride()) {
    const u64 j = (i & ~mask) | (log_n ? __brevll(i & mask) >> (64 - log_n) : 0);
    store(out + 4 * i, load(in + 4 * j));
  }
}

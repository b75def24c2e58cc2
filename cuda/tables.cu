// SPDX-License-Identifier: Apache-2.0
// Multiples of points that stay: tables for sums over fixed bases, and the multiples of one base by many scalars.
//
//   table     T[k n + i] = 2^(k s) P_i: what is in place for k = 0 is continued for k = 1, 2, ..
//   multiples d 2^(k c) B, 0 < d <= 2^(c-1): then a product by a scalar is a sum of one entry a window
//   affine    sums X, Y, ZZ, ZZZ to points, an inversion for each thread's share of them
//
// Doubling needs no Z where a = 0 (dbl-2009-l: X and Y of 2P follow from X and Y, and Z grows by the factor 2 Y). So a
// thread carries (X, Y) through the doublings and stores the factor by which Z grew between two entries; Z is the product of
// the factors so far, and one inversion of the last one, followed back through the factors, serves all entries.
//
// Threads take points t, t + threads, .., so neighbours lie in neighbouring threads. Needs `Curve`; docs/kernels.md, 6.
#include "lazy_curve.cuh"

namespace pinzk {

PINZK_INLINE u64 thread() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
PINZK_INLINE u64 threads() { return u64(gridDim.x) * blockDim.x; }

// (x, y, z) = 2 (x, y, z), z the factor since the last entry
template <class E>
PINZK_INLINE void double_jacobian(E& x, E& y, E& z) {
  const E a = x.squared(), b = y.squared(), c = b.squared(), half_d = (x + b).squared() - a - c, d = half_d + half_d;
  const E e = a + a + a, c2 = c + c, c4 = c2 + c2;
  z = z * (y + y);
  x = e.squared() - (d + d);
  y = e * (d - x) - (c4 + c4);
}

// T[k n + i], 0 < k < multiples, for the points i of first .. first + count. `factors`: multiples * count elements, the last
// row for products over a thread's points
template <class E>
PINZK_INLINE void table(u64* t, u64* factors, u64 n, u64 first, u64 count, int spacing, int multiples) {
  using C = typename E::Called;  // doublings are most of the work: all else is called
  const auto entry = [&](int k, u64 i) { return t + (k * n + first + i) * 2 * E::words; };
  const auto factor = [&](int k, u64 i) { return factors + (k * count + i) * E::words; };
  C product = C::one();
  for (u64 i = thread(); i < count; i += threads()) {
    product.store(factor(multiples - 1, i));
    auto p = LazyAffine<E>::load(entry(0, i));
    const bool infinity = p.is_infinity();
    for (int k = 1; k < multiples; k++) {
      E z = E::one();
      for (int j = 0; j < spacing; j++) double_jacobian(p.x, p.y, z);
      if (infinity) z = E::one();
      p.x.store(entry(k, i)), p.y.store(entry(k, i) + E::words);
      z.store(factor(k - 1, i));
      product = product * z.called();
    }
  }
  if (thread() >= count) return;
  C inverse = product.inverse();
  for (u64 i = thread() + (count - 1 - thread()) / threads() * threads();; i -= threads()) {
    C z = inverse * C::load(factor(multiples - 1, i));  // 1 / Z of this point's last entry
    for (int k = multiples - 1; k > 0; k--) {
      const C zz = z.squared(), x = C::load(entry(k, i)) * zz, y = C::load(entry(k, i) + E::words) * (zz * z);
      x.canonical().store(entry(k, i)), y.canonical().store(entry(k, i) + E::words);
      const C f = C::load(factor(k - 1, i));
      z = z * f, inverse = inverse * f;
    }
    if (i < threads()) break;
  }
}

// points of n sums; infinity is all zeros
template <class E>
PINZK_INLINE void affine(u64* points, const u64* sums, u64 n) {
  using Sum = LazyXyzz<E>;
  E product = E::one();
  for (u64 i = thread(); i < n; i += threads()) {
    product.store(points + i * 2 * E::words);  // of those before
    const E zzz = E::load(sums + i * Sum::words + 3 * E::words);
    if (!zzz.blank()) product = product * zzz;
  }
  if (thread() >= n) return;
  E inverse = product.inverse();
  for (u64 i = thread() + (n - 1 - thread()) / threads() * threads();; i -= threads()) {
    const Sum s = Sum::load(sums + i * Sum::words);
    E x = E::zero(), y = E::zero();
    if (!s.is_infinity()) {
      const E zzz = inverse * E::load(points + i * 2 * E::words), z = s.zz * zzz;  // 1 / ZZZ, 1 / Z
      inverse = inverse * s.zzz;
      x = s.x * z.squared(), y = s.y * zzz;
    }
    x.canonical().store(points + i * 2 * E::words), y.canonical().store(points + (2 * i + 1) * E::words);
    if (i < threads()) break;
  }
}

// sums[(k << log_row) + d - 1] = d bases[k], 0 < d <= 2^log_row
template <class E>
PINZK_INLINE void multiples(u64* sums, const u64* bases, int log_row, u64 n) {
  const u64 i = thread();
  if (i >= n) return;
  const u64 d = (i & ((u64(1) << log_row) - 1)) + 1;
  const auto base = LazyAffine<E>::load(bases + (i >> log_row) * LazyAffine<E>::words);
  auto sum = LazyXyzz<E>::infinity();
  for (int bit = log_row; bit >= 0; bit--) {
    sum = sum.doubled();
    if (d >> bit & 1) sum.add(base);
  }
  sum.store(sums + i * sum.words);
}

// sums[i] = scalars[i] B; table[(k << (c-1)) + d - 1] = d 2^(k c) B; scalars of four words, c windows <= 256 + c - 1 bits
template <class E>
PINZK_INLINE void multiply(u64* sums, const u64* table, const u64* scalars, u64 n, int c, int windows) {
  const u64 i = thread();
  if (i >= n) return;
  const Limbs<4> k = load_words<4>(scalars + 4 * i);
  const u64 half = u64(1) << (c - 1);
  auto sum = LazyXyzz<E>::infinity();
  u64 carry = 0;
  for (int w = 0; w < windows; w++) {
    const u64 digit = bits(k, w * c, c) + carry;  // up to 2^c; a digit above half is one less in the next window
    const bool negative = digit > half;
    const u64 d = negative ? 2 * half - digit : digit;
    carry = negative;
    if (d == 0) continue;
    const auto p = LazyAffine<E>::load(table + ((w << (c - 1)) + d - 1) * LazyAffine<E>::words).negated_if(negative);
    if (sum.is_infinity())
      sum = LazyXyzz<E>::from(p);
    else
      sum.add(p);
  }
  sum.store(sums + i * sum.words);
}

template <class G>
using Element = typename LazyOf<typename G::F>::Element;
template <class G>
using Called = typename Element<G>::Called;

}  // namespace pinzk

using namespace pinzk;

#define PINZK_TABLE_KERNELS(g, G)                                                                                          \
  extern "C" __global__ __launch_bounds__(128) void g##_table(u64* t, u64* factors, const u64 n, const u64 first,          \
                                                              const u64 count, const int spacing, const int multiples) {   \
    table<Element<G>>(t, factors, n, first, count, spacing, multiples);                                                    \
  }                                                                                                                        \
  extern "C" __global__ __launch_bounds__(128) void g##_affine(u64* points, const u64* sums, const u64 n) {                \
    affine<Called<G>>(points, sums, n);                                                                                    \
  }                                                                                                                        \
  extern "C" __global__ __launch_bounds__(128) void g##_multiples(u64* sums, const u64* bases, const int log_row,          \
                                                                  const u64 n) {                                           \
    multiples<Called<G>>(sums, bases, log_row, n);                                                                         \
  }                                                                                                                        \
  extern "C" __global__ __launch_bounds__(128) void g##_multiply(u64* sums, const u64* t, const u64* scalars, const u64 n, \
                                                                 const int c, const int windows) {                         \
    multiply<Called<G>>(sums, t, scalars, n, c, windows);                                                                  \
  }

PINZK_TABLE_KERNELS(g1, Curve::G1)
PINZK_TABLE_KERNELS(g2, Curve::G2)

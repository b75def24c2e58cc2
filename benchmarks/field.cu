// SPDX-License-Identifier: Apache-2.0
// One operation over and over, in registers: what bench_field.py times. Every kernel's result is checked there.
//
// Thread i of n takes row i of x, does `rounds` operations and puts the result back. Needs `Curve`.
#include "lazy_curve.cuh"

using namespace pinzk;
using Fr = Curve::Fr;
using Fp = Curve::Fp;

constexpr int BLOCK = 128;
constexpr int BLOCKS = Fp::N == 6 ? 3 : 4;  // of a multiprocessor, at least

PINZK_INLINE u64 index() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
template <class F>
PINZK_INLINE F element(const u64* rows, u64 i) {
  return F{load_words<F::N>(rows + F::N * i)};
}

// x y^rounds
extern "C" __global__ void fr_mul(u64* x, const u64* y, const int rounds) {
  Fr a = element<Fr>(x, index());
  const Fr b = element<Fr>(y, index());
  for (int k = 0; k < rounds; k++) a = a * b;
  store_words(x + Fr::N * index(), a.limbs);
}

// x^(2^rounds)
extern "C" __global__ void fr_sqr(u64* x, const u64*, const int rounds) {
  Fr a = element<Fr>(x, index());
  for (int k = 0; k < rounds; k++) a = a.squared();
  store_words(x + Fr::N * index(), a.limbs);
}

// x y^rounds, y as a fixed operand
extern "C" __global__ void fr_fixed(u64* x, const u64* y, const int rounds) {
  Lazy<Fr> a{Words<Fr::N>::from(load_words<Fr::N>(x + Fr::N * index()))};
  const Fixed<Fr> b = fixed_operand(element<Fr>(y, index()));
  for (int k = 0; k < rounds; k++) a = a.times(b);
  store_words(x + Fr::N * index(), a.canonical().v.limbs());
}

// x y^rounds
extern "C" __global__ void fp_mul(u64* x, const u64* y, const int rounds) {
  auto a = Single<Fp>::load(x + Fp::N * index());
  const auto b = Single<Fp>::load(y + Fp::N * index());
  for (int k = 0; k < rounds; k++) a = a * b;
  a.canonical().store(x + Fp::N * index());
}

// x^(2^rounds)
extern "C" __global__ void fp_sqr(u64* x, const u64*, const int rounds) {
  auto a = Single<Fp>::load(x + Fp::N * index());
  for (int k = 0; k < rounds; k++) a = a.squared();
  a.canonical().store(x + Fp::N * index());
}

// x (y_i - y_(i+1))^rounds, each time as x y_i - y_(i+1) x; y has a row more than x
extern "C" __global__ void fp_dot(u64* x, const u64* y, const int rounds) {
  auto a = Single<Fp>::load(x + Fp::N * index());
  const auto b = Single<Fp>::load(y + Fp::N * index()), c = Single<Fp>::load(y + Fp::N * (index() + 1));
  for (int k = 0; k < rounds; k++) a = Single<Fp>::cross(a, b, c, a);
  a.canonical().store(x + Fp::N * index());
}

// ---- sums of points ----

// the table's entry and sign for thread i and round k
PINZK_INLINE u32 scattered(u32 i, u32 k) {
  u32 h = i * 0x9e3779b1u + k * 0x85ebca77u;
  h = (h ^ h >> 15) * 0xc2b2ae3du;
  return h ^ h >> 13;
}

// out_i = T_i + rounds T_(i+1), from registers
template <class E>
PINZK_INLINE void add_same(u64* out, const u64* table, const u32 entries, const int rounds) {
  const u64 i = index();
  auto sum = LazyXyzz<E>::from(LazyAffine<E>::load(table + i % entries * LazyAffine<E>::words));
  const auto p = LazyAffine<E>::load(table + (i + 1) % entries * LazyAffine<E>::words);
  for (int k = 0; k < rounds; k++) sum.add(p);
  sum.canonical().store(out + i * sum.words);
}
// out_i = T_i + sum of `rounds` scattered entries, some negated; entries is a power of two
template <class E>
PINZK_INLINE void add_scattered(u64* out, const u64* table, const u32 entries, const int rounds) {
  const u64 i = index();
  auto sum = LazyXyzz<E>::from(LazyAffine<E>::load(table + i % entries * LazyAffine<E>::words));
  for (int k = 0; k < rounds; k++) {
    const u32 h = scattered(static_cast<u32>(i), k);
    sum.add(LazyAffine<E>::load(table + u64(h & (entries - 1)) * LazyAffine<E>::words).negated_if(h >> 31));
  }
  sum.canonical().store(out + i * sum.words);
}
// out_i = T_i + rounds 2 T_(i+1), both general
template <class E>
PINZK_INLINE void add_general(u64* out, const u64* table, const u32 entries, const int rounds) {
  const u64 i = index();
  auto sum = LazyXyzz<E>::from(LazyAffine<E>::load(table + i % entries * LazyAffine<E>::words));
  const auto p = LazyXyzz<E>::from(LazyAffine<E>::load(table + (i + 1) % entries * LazyAffine<E>::words)).doubled();
  for (int k = 0; k < rounds; k++) sum.add(p);
  sum.canonical().store(out + i * sum.words);
}

#define SUMS(name, what, Element, blocks)                                     \
  extern "C" __global__ void __launch_bounds__(BLOCK, blocks)                 \
      name(u64* out, const u64* table, const u32 entries, const int rounds) { \
    what<Element>(out, table, entries, rounds);                               \
  }
SUMS(g1_add, add_same, Single<Fp>, BLOCKS)
SUMS(g1_add_gathered, add_scattered, Single<Fp>, BLOCKS)
SUMS(g1_add_general, add_general, Single<Fp>, BLOCKS)
SUMS(g2_add, add_same, Double<Fp>, 2)
SUMS(g2_add_gathered, add_scattered, Double<Fp>, 2)
SUMS(g2_add_general, add_general, Double<Fp>, 2)

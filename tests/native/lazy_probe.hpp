// SPDX-License-Identifier: Apache-2.0
// Products of lazy residues and sums of points over them, one operation at a time over rows of words (see probe.hpp).
//
// Coordinates go in and come out as they are, below 2p or not, so that tests see the largest value.
#pragma once
#include <cstddef>
#include <cstring>

#include "lazy_curve.cuh"

namespace pinzk::probe {

using std::size_t;

// over four rows below 2p. square_canonical: the first is below p. twice_b: b doubled, unreduced, as it goes into a product
enum class ProductOp {
  product,
  product_twice_b,
  square,
  square_canonical,
  dot_2,
  dot_4,
  cross,
  inverse,
  is_zero,
  may_be_zero,
  canonical
};

template <class F>
Limbs<F::N> product(ProductOp op, const Lazy<F> (&x)[4]) {
  const Single<F> a{x[0]}, b{x[1]}, c{x[2]}, d{x[3]};
  Limbs<F::N> truth{{1}};
  switch (op) {
    case ProductOp::product:
      return (a * b).v.v.limbs();
    case ProductOp::product_twice_b:
      return lazy_mul<4>(a.v, loose_add(b.v, b.v)).v.limbs();
    case ProductOp::square:
      return a.squared().v.v.limbs();
    case ProductOp::square_canonical:
      return a.canonical().squared().v.v.limbs();
    case ProductOp::dot_2:
      return lazy_dot(a.v, b.v, c.v, d.v).v.limbs();
    case ProductOp::dot_4:
      return lazy_dot(a.v, b.v, c.v, d.v, a.v, c.v, b.v, d.v).v.limbs();
    case ProductOp::cross:
      return Single<F>::cross(a, b, c, d).v.v.limbs();
    case ProductOp::inverse:
      return a.inverse().v.v.limbs();
    case ProductOp::is_zero:
      return a.is_zero() ? truth : Limbs<F::N>{};
    case ProductOp::may_be_zero:
      return a.may_be_zero() ? truth : Limbs<F::N>{};
    case ProductOp::canonical:
      return a.canonical().v.v.limbs();
  }
  return {};
}

// operations of Fp2 over two elements, a doubled pair of coordinates each
enum class PairOp { product, square, cross, inverse, add, subtract };

template <class F>
Double<F> pair(PairOp op, const Double<F> (&x)[4]) {
  switch (op) {
    case PairOp::product:
      return x[0] * x[1];
    case PairOp::square:
      return x[0].squared();
    case PairOp::cross:
      return Double<F>::cross(x[0], x[1], x[2], x[3]);
    case PairOp::inverse:
      return x[0].inverse();
    case PairOp::add:
      return x[0] + x[1];
    case PairOp::subtract:
      return x[0] - x[1];
  }
  return x[0];
}

// a: X, Y, ZZ, ZZZ; b: likewise, or an affine point in its first half
enum class SumOp { from_affine, add_affine, subtract_affine, add, doubled, canonical };

template <class E>
LazyXyzz<E> sum(SumOp op, LazyXyzz<E> a, const LazyXyzz<E>& b) {
  const LazyAffine<E> p{b.x, b.y};
  switch (op) {
    case SumOp::from_affine:
      return LazyXyzz<E>::from(p);
    case SumOp::add_affine:
      a.add(p);
      return a;
    case SumOp::subtract_affine:
      a.add(p.negated_if(true));
      return a;
    case SumOp::add:
      a.add(b);
      return a;
    case SumOp::doubled:
      return a.doubled();
    case SumOp::canonical:
      return a.canonical();
  }
  return a;
}

template <class E>
void sums(int op, const u64* a, const u64* b, u64* out, size_t n) {
  for (size_t i = 0; i < n * LazyXyzz<E>::words; i += LazyXyzz<E>::words)
    sum(static_cast<SumOp>(op), LazyXyzz<E>::load(a + i), LazyXyzz<E>::load(b + i)).store(out + i);
}

}  // namespace pinzk::probe

extern "C" {

void product_op(int op, const u64* abcd, u64* out, std::size_t n) {
  using namespace pinzk;
  using F = Curve::Fp;
  for (std::size_t i = 0; i < n; i++, abcd += 4 * F::N, out += F::N) {
    Lazy<F> x[4];
    for (int k = 0; k < 4; k++) x[k] = Single<F>::load(abcd + k * F::N).v;
    store_words(out, probe::product<F>(static_cast<probe::ProductOp>(op), x));
  }
}

void pair_op(int op, const u64* abcd, u64* out, std::size_t n) {
  using namespace pinzk;
  using E = Double<Curve::Fp>;
  for (std::size_t i = 0; i < n; i++, abcd += 4 * E::words, out += E::words) {
    E x[4];
    for (int k = 0; k < 4; k++) x[k] = E::load(abcd + k * E::words);
    probe::pair(static_cast<probe::PairOp>(op), x).store(out);
  }
}

void sum_op(int group, int op, const u64* a, const u64* b, u64* out, std::size_t n) {
  using namespace pinzk;
  if (group == 1) probe::sums<LazyOf<Curve::G1::F>::Element>(op, a, b, out, n);
  if (group == 2) probe::sums<LazyOf<Curve::G2::F>::Element>(op, a, b, out, n);
}

}  // extern "C"

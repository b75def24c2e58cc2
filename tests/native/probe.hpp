// SPDX-License-Identifier: Apache-2.0
// One operation of the templates at a time, over rows of words: what the tests see of fields and groups.
//
// A translation unit is three lines: include a curve, `using Curve = ...;`, include this file. tests/probe.py builds one
// library a curve and calls it through ctypes; the operations are numbered as in its lists.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lazy.cuh"

namespace pinzk::probe {

using word = std::uint64_t;
using std::size_t;

enum class FieldOp {
  add,
  subtract,
  negate,
  multiply,
  twice,
  square,
  inverse,
  add_to,
  subtract_from,
  multiply_by,
  from_canonical,
  to_canonical,
  power,
  product,
  conjugate,
  times
};

// operations of every field; `_to`, `_from`, `_by` are the assigning forms, on one object when `aliased`
template <class F>
F common(FieldOp op, F a, const F& b, bool aliased) {
  switch (op) {
    case FieldOp::add:
      return a + b;
    case FieldOp::subtract:
      return a - b;
    case FieldOp::negate:
      return -a;
    case FieldOp::multiply:
      return a * b;
    case FieldOp::twice:
      return a.doubled();
    case FieldOp::square:
      return a.squared();
    case FieldOp::inverse:
      return a.inverse();
    case FieldOp::add_to:
      return aliased ? a += a : a += b;
    case FieldOp::subtract_from:
      return aliased ? a -= a : a -= b;
    case FieldOp::multiply_by:
      return aliased ? a *= a : a *= b;
    default:
      return F::zero();
  }
}

template <class P, class Machine>
Field<P, Machine> field(FieldOp op, const Field<P, Machine>& a, const Field<P, Machine>& b, bool aliased) {
  using F = Field<P, Machine>;
  switch (op) {
    case FieldOp::from_canonical:
      return F::from_canonical(a.limbs);
    case FieldOp::to_canonical:
      return {a.to_canonical()};
    case FieldOp::power:
      return a.power_vartime(b.limbs);
    case FieldOp::product:
      return {derive::product(a.limbs, b.limbs, F::modulus)};  // the product of constant expressions
    default:
      return common(op, a, b, aliased);
  }
}

template <class B>
Fp2<B> field(FieldOp op, const Fp2<B>& a, const Fp2<B>& b, bool aliased) {
  switch (op) {
    case FieldOp::conjugate:
      return a.conjugate();
    case FieldOp::times:
      return a.times(b.c0);
    default:
      return common(op, a, b, aliased);
  }
}

// lazy residues: a and b below 2p, results below 2p; c is a field element, in products as a fixed operand or as it is.
// quotient: of the fixed operand c. loose_*: a +- b goes into the product by c unreduced.
enum class LazyOp { add, subtract, canonical, times_fixed, times, loose_add, loose_subtract, quotient };

template <class F>
Limbs<F::N> lazy(LazyOp op, const Limbs<F::N>& a, const Limbs<F::N>& b, const F& c) {
  const Lazy<F> x{Words<F::N>::from(a)}, y{Words<F::N>::from(b)};
  const Fixed<F> f = fixed_operand(c);
  switch (op) {
    case LazyOp::add:
      return (x + y).v.limbs();
    case LazyOp::subtract:
      return (x - y).v.limbs();
    case LazyOp::canonical:
      return x.canonical().v.limbs();
    case LazyOp::times_fixed:
      return x.times(f).v.limbs();
    case LazyOp::times:
      return x.times(Words<F::N>::from(c.limbs)).v.limbs();
    case LazyOp::loose_add:
      return loose_add(x, y).times(f).v.limbs();
    case LazyOp::loose_subtract:
      return loose_sub(x, y).times(f).v.limbs();
    case LazyOp::quotient:
      return f.quotient.limbs();
  }
  return a;
}

enum class PointOp { from_affine, twice, add_affine, add, add_itself, doubled, negate, negate_affine, to_affine, times };

// Operands and result are four coordinates X, Y, ZZ, ZZZ; an affine point is the first two, the others ignored (zero in
// results). times: the scalar is the first four words of b.
template <class F>
Xyzz<F> point(PointOp op, Xyzz<F> a, const Xyzz<F>& b) {
  const Affine<F> p{a.x, a.y};
  const auto affine = [](const Affine<F>& q) { return Xyzz<F>{q.x, q.y, F::zero(), F::zero()}; };
  switch (op) {
    case PointOp::from_affine:
      return Xyzz<F>::from(p);
    case PointOp::twice:
      return Xyzz<F>::twice(p);
    case PointOp::add_affine:
      a.add(Affine<F>{b.x, b.y});
      return a;
    case PointOp::add:
      a.add(b);
      return a;
    case PointOp::add_itself:
      a.add(a);
      return a;
    case PointOp::doubled:
      return a.doubled();
    case PointOp::negate:
      return -a;
    case PointOp::negate_affine:
      return affine(-p);
    case PointOp::to_affine:
      return affine(a.to_affine());
    case PointOp::times:
      return a.times_vartime(reinterpret_cast<const Limbs<4>&>(b));
  }
  return a;
}

template <class T>
T load(const word* p) {
  T x;
  std::memcpy(&x, p, sizeof(T));
  return x;
}

template <class T>
void store(word* p, const T& x) {
  std::memcpy(p, &x, sizeof(T));
}

template <class F>
void field_rows(int op, const word* a, const word* b, word* out, size_t n) {
  const bool aliased = a == b;
  for (size_t i = 0; i < n; i++, a += sizeof(F) / 8, b += sizeof(F) / 8, out += sizeof(F) / 8)
    store(out, field(static_cast<FieldOp>(op), load<F>(a), load<F>(b), aliased));
}

template <class F>
void point_rows(int op, const word* a, const word* b, word* out, size_t n) {
  static_assert(sizeof(Xyzz<F>) >= sizeof(Limbs<4>), "a scalar must fit the row of a point");
  for (size_t i = 0; i < n; i++, a += sizeof(Xyzz<F>) / 8, b += sizeof(Xyzz<F>) / 8, out += sizeof(Xyzz<F>) / 8)
    store(out, point(static_cast<PointOp>(op), load<Xyzz<F>>(a), load<Xyzz<F>>(b)));
}

// rows of N words: modulus, R, R^2, one, root_of_unity(5), root_of_unity(7), root_of_unity(generator); then four words:
// -1/p mod 2^64, two-adicity, bits, generator. All made in constant expressions.
template <class F>
void constants(word* out) {
  constexpr F elements[] = {F::one(), F::root_of_unity(5), F::root_of_unity(7), F::root_of_unity(F::Params::generator)};
  constexpr u64 numbers[] = {F::np, F::two_adicity, F::bits, F::Params::generator};
  store(out, F::modulus);
  store(out + F::N, F::r);
  store(out + 2 * F::N, F::r2);
  store(out + 3 * F::N, elements);
  store(out + 7 * F::N, numbers);
}

// the coefficient b, then the generator
template <class G>
void constants_of_group(word* out) {
  constexpr typename G::F b = G::b();
  constexpr Affine<typename G::F> generator = G::generator();
  store(out, b);
  store(out + sizeof(b) / 8, generator);
}

}  // namespace pinzk::probe

using pinzk::probe::word;

extern "C" {

// which: 0 Fr, 1 Fp, 2 Fp2
void field_op(int which, int op, const word* a, const word* b, word* out, size_t n) {
  using namespace pinzk::probe;
  if (which == 0) field_rows<Curve::Fr>(op, a, b, out, n);
  if (which == 1) field_rows<Curve::Fp>(op, a, b, out, n);
  if (which == 2) field_rows<pinzk::Fp2<Curve::Fp>>(op, a, b, out, n);
}

void lazy_op(int op, const word* a, const word* b, const word* c, word* out, size_t n) {
  using namespace pinzk::probe;
  using F = Curve::Fr;
  for (size_t i = 0; i < F::N * n; i += F::N)
    store(out + i,
          lazy(static_cast<LazyOp>(op), load<pinzk::Limbs<F::N>>(a + i), load<pinzk::Limbs<F::N>>(b + i), load<F>(c + i)));
}

void point_op(int group, int op, const word* a, const word* b, word* out, size_t n) {
  using namespace pinzk::probe;
  if (group == 1) point_rows<Curve::G1::F>(op, a, b, out, n);
  if (group == 2) point_rows<Curve::G2::F>(op, a, b, out, n);
}

void field_constants(int which, word* out) {
  which == 0 ? pinzk::probe::constants<Curve::Fr>(out) : pinzk::probe::constants<Curve::Fp>(out);
}

void group_constants(int group, word* out) {
  group == 1 ? pinzk::probe::constants_of_group<Curve::G1>(out) : pinzk::probe::constants_of_group<Curve::G2>(out);
}

// mac_portable, and mac of the machine: (lo, hi) of a * b + c + d
void multiply_words(const word* abcd, word* portable, word* native) {
  u64 hi;
  portable[0] = pinzk::mac_portable(abcd[0], abcd[1], abcd[2], abcd[3], hi);
  portable[1] = hi;
  hi = abcd[3];
  native[0] = pinzk::mac(abcd[2], abcd[0], abcd[1], hi);
  native[1] = hi;
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Field<P>: a prime field in Montgomery form, from two facts: the modulus p and a generator of its multiplicative group.
//
// An element x is stored as x * R mod p with R = 2^(64N), always in [0, p). All constants are derived at compile time
// (docs/arithmetic.md, section 2). A parameter struct P states
//   N          words of 64 bits
//   modulus    p, odd, with its top bit clear (so that the product below needs no extra word)
//   generator  a small generator of the multiplicative group, canonical
#pragma once
#include "limbs.cuh"

namespace pinzk {

// ---- constants, derived in constant expressions with portable arithmetic ----
namespace derive {

// -1 / p mod 2^64, by Newton's iteration (each step doubles the correct bits; 3 to begin with)
constexpr u64 negative_inverse(u64 p) {
  u64 x = p;
  for (int i = 0; i < 5; i++) x *= 2 - p * x;
  return ~x + 1;
}

// a b mod 2^(64N)
template <int N>
constexpr Limbs<N> low_product(const Limbs<N>& a, const Limbs<N>& b) {
  Limbs<N> r{};
  for (int i = 0; i < N; i++) {
    u64 carry = 0;
    for (int j = 0; i + j < N; j++) r.word[i + j] = mac_portable(a.word[j], b.word[i], r.word[i + j], carry, carry);
  }
  return r;
}

// -1 / p mod 2^(64N), the same iteration on N words
template <int N>
constexpr Limbs<N> negative_inverse(const Limbs<N>& p) {
  Limbs<N> x{};
  x.word[0] = ~negative_inverse(p.word[0]) + 1;  // 1 / p mod 2^64
  for (int bits = 64; bits < 64 * N; bits *= 2) {
    Limbs<N> two_minus = minus(Limbs<N>{{2}}, low_product(p, x));
    x = low_product(x, two_minus);
  }
  return minus(Limbs<N>{}, x);
}

// 2x mod p for x < p < 2^(64N - 1)
template <int N>
constexpr Limbs<N> twice(const Limbs<N>& x, const Limbs<N>& p) {
  Limbs<N> r{};
  for (int i = 0; i < N; i++) r.word[i] = (x.word[i] << 1) | (i ? x.word[i - 1] >> 63 : 0);
  return less(r, p) ? r : minus(r, p);
}

// 2^k mod p
template <int N>
constexpr Limbs<N> power_of_two(int k, const Limbs<N>& p) {
  Limbs<N> r{};
  r.word[0] = 1;
  for (int i = 0; i < k; i++) r = twice(r, p);
  return r;
}

// a * b / R mod p
template <int N>
constexpr Limbs<N> product(const Limbs<N>& a, const Limbs<N>& b, const Limbs<N>& p) {
  const u64 np = negative_inverse(p.word[0]);
  Limbs<N> t{};
  for (int i = 0; i < N; i++) {
    u64 high = 0, low = 0;
    t.word[0] = mac_portable(a.word[0], b.word[i], t.word[0], 0, high);
    const u64 m = t.word[0] * np;
    mac_portable(m, p.word[0], t.word[0], 0, low);
    for (int j = 1; j < N; j++) {
      t.word[j] = mac_portable(a.word[j], b.word[i], t.word[j], high, high);
      t.word[j - 1] = mac_portable(m, p.word[j], t.word[j], low, low);
    }
    t.word[N - 1] = high + low;
  }
  return less(t, p) ? t : minus(t, p);
}

// base^exponent, base and result in Montgomery form
template <int N>
constexpr Limbs<N> power(const Limbs<N>& base, const Limbs<N>& exponent, const Limbs<N>& one, const Limbs<N>& p) {
  Limbs<N> r = one;
  for (int i = bit_length(exponent) - 1; i >= 0; i--) {
    r = product(r, r, p);
    if (bit(exponent, i)) r = product(r, base, p);
  }
  return r;
}

template <int N>
constexpr Limbs<N> small(u64 x) {
  Limbs<N> r{};
  r.word[0] = x;
  return r;
}

template <int N>
constexpr int two_adicity(const Limbs<N>& p) {
  int s = 0;
  for (Limbs<N> t = minus(p, small<N>(1)); !(t.word[0] & 1); t = half(t)) s++;
  return s;
}

// generator^((p - 1) / 2^s): a primitive 2^s-th root of unity, Montgomery form
template <int N>
constexpr Limbs<N> root_of_unity(u64 generator, const Limbs<N>& r2, const Limbs<N>& one, const Limbs<N>& p) {
  Limbs<N> t = minus(p, small<N>(1));
  while (!(t.word[0] & 1)) t = half(t);
  return power(product(small<N>(generator), r2, p), t, one, p);
}

}  // namespace derive

// ---- how a machine adds, subtracts, multiplies, squares and inverts; F is a Field ----
struct SquareByProduct {
  template <class F>
  static PINZK_INLINE F squared(const F& a) {
    return F::mul(a, a);
  }
};

struct PowerInverse {
  // 1 / a, 0 for 0, by Fermat's theorem
  template <class F>
  static F inverse(const F& a) {
    return a.power_vartime(minus(F::modulus, derive::small<F::N>(2)));
  }
};

struct Portable : PowerInverse, SquareByProduct {
  // in: a, b < p; out: a + b mod p, < p
  template <class F>
  static PINZK_INLINE F add(const F& a, const F& b) {
    F s;
    u64 carry = 0;
    PINZK_UNROLL
    for (int i = 0; i < F::N; i++) s.limbs.word[i] = add_carry(a.limbs.word[i], b.limbs.word[i], carry);
    return reduced(s);  // 2p < 2^(64N): no carry out
  }

  // in: a, b < p; out: a - b mod p, < p
  template <class F>
  static PINZK_INLINE F sub(const F& a, const F& b) {
    F d;
    u64 borrow = 0, carry = 0;
    PINZK_UNROLL
    for (int i = 0; i < F::N; i++) d.limbs.word[i] = sub_borrow(a.limbs.word[i], b.limbs.word[i], borrow);
    const u64 mask = 0 - borrow;
    PINZK_UNROLL
    for (int i = 0; i < F::N; i++) d.limbs.word[i] = add_carry(d.limbs.word[i], F::modulus.word[i] & mask, carry);
    return d;
  }

  // a * b / R mod p, coarsely integrated operand scanning; the clear top bit of p keeps the sum in N words: it stays below
  // 2p while the words of b are taken in, whatever they are. in: a < p, b < R; out: < p
  template <class F>
  static PINZK_OUTLINE F mul(const F& a, const F& b) {
    F t{};
    PINZK_UNROLL
    for (int i = 0; i < F::N; i++) {
      const u64 digit = b.limbs.word[i];
      u64 high = 0, low = 0;
      t.limbs.word[0] = mac(t.limbs.word[0], a.limbs.word[0], digit, high);
      const u64 m = t.limbs.word[0] * F::np;
      mac(t.limbs.word[0], m, F::modulus.word[0], low);
      PINZK_UNROLL
      for (int j = 1; j < F::N; j++) {
        t.limbs.word[j] = mac(t.limbs.word[j], a.limbs.word[j], digit, high);
        t.limbs.word[j - 1] = mac(t.limbs.word[j], m, F::modulus.word[j], low);
      }
      t.limbs.word[F::N - 1] = high + low;
    }
    return reduced(t);
  }

  // in: a < 2p; out: a mod p
  template <class F>
  static PINZK_INLINE F reduced(const F& a) {
    F d;
    u64 borrow = 0;
    PINZK_UNROLL
    for (int i = 0; i < F::N; i++) d.limbs.word[i] = sub_borrow(a.limbs.word[i], F::modulus.word[i], borrow);
    const u64 mask = 0 - borrow;
    PINZK_UNROLL
    for (int i = 0; i < F::N; i++) d.limbs.word[i] ^= (d.limbs.word[i] ^ a.limbs.word[i]) & mask;
    return d;
  }
};

template <class P, class Machine = Portable>
struct Field {
  using Params = P;
  static constexpr int N = P::N;
  static constexpr Limbs<N> modulus = P::modulus;
  static constexpr int bits = bit_length(P::modulus);
  static constexpr int two_adicity = derive::two_adicity(P::modulus);
  static constexpr u64 np = derive::negative_inverse(P::modulus.word[0]);    // -1/p mod 2^64
  static constexpr Limbs<N> r = derive::power_of_two(64 * N, P::modulus);    // R mod p, the one of this field
  static constexpr Limbs<N> r2 = derive::power_of_two(128 * N, P::modulus);  // R^2 mod p
  static constexpr Limbs<N> negative_inverse() { return derive::negative_inverse(P::modulus); }  // -1/p mod R
  static_assert(!(P::modulus.word[N - 1] >> 63) && (P::modulus.word[0] & 1), "odd modulus with a clear top bit");

  Limbs<N> limbs;

  // a constant of the parameter files: canonical in, Montgomery out, at compile time
  static constexpr Field constant(const Limbs<N>& canonical) { return {derive::product(canonical, r2, P::modulus)}; }
  static constexpr Field constant(u64 canonical) { return constant(derive::small<N>(canonical)); }
  static constexpr Field zero() { return {Limbs<N>{}}; }
  static constexpr Field one() { return {r}; }
  // primitive 2^two_adicity-th root that a generator defines; generators belong to file formats (docs/arithmetic.md, 5)
  static constexpr Field root_of_unity(u64 generator) { return {derive::root_of_unity(generator, r2, r, P::modulus)}; }

  constexpr bool is_zero() const { return pinzk::is_zero(limbs); }
  friend constexpr bool operator==(const Field& a, const Field& b) { return equal(a.limbs, b.limbs); }
  friend constexpr bool operator!=(const Field& a, const Field& b) { return !(a == b); }

  // in: a canonical, or any N-word integer, which it reduces; out: Montgomery
  static PINZK_INLINE Field from_canonical(const Limbs<N>& a) { return mul(Field{r2}, Field{a}); }
  // out: canonical, < p
  PINZK_INLINE Limbs<N> to_canonical() const { return mul(*this, Field{derive::small<N>(1)}).limbs; }

  // in: a, b < p; out: < p
  friend PINZK_INLINE Field operator+(const Field& a, const Field& b) { return Machine::add(a, b); }
  friend PINZK_INLINE Field operator-(const Field& a, const Field& b) { return Machine::sub(a, b); }
  friend PINZK_INLINE Field operator-(const Field& a) { return zero() - a; }
  friend PINZK_INLINE Field operator*(const Field& a, const Field& b) { return mul(a, b); }
  Field& operator+=(const Field& b) { return *this = *this + b; }
  Field& operator-=(const Field& b) { return *this = *this - b; }
  Field& operator*=(const Field& b) { return *this = *this * b; }
  PINZK_INLINE Field doubled() const { return *this + *this; }
  PINZK_INLINE Field squared() const { return Machine::squared(*this); }

  // a * b / R mod p. In: a < p, b < R (any N-word integer); out: < p
  static PINZK_INLINE Field mul(const Field& a, const Field& b) { return Machine::mul(a, b); }

  // this^exponent; not constant time
  template <int M>
  PINZK_OUTLINE Field power_vartime(const Limbs<M>& exponent) const {
    Field x = one();
    for (int i = bit_length(exponent) - 1; i >= 0; i--) {
      x = x.squared();
      if (bit(exponent, i)) x *= *this;
    }
    return x;
  }

  // 1 / this; 0 for 0
  PINZK_OUTLINE Field inverse() const { return Machine::inverse(*this); }
};

}  // namespace pinzk

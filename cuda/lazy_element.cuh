// SPDX-License-Identifier: Apache-2.0
// Elements of Fp and Fp2 for sums of points: residues below 2p, with the products that additions are made of.
//
//   Single<F>  an element of Fp
//   Double<F>  an element of Fp2
//   Cold<E>    either, its products called instead of written out: for code that runs rarely
//
// inverse() is a power of Fermat's, some 600 products, called; 0 for 0.
//
// All have the operations of Single; a - b and a + b are below 2p again. Memory holds the words of Field or Fp2, below 2p.
#pragma once
#include "fp2.cuh"
#include "lazy_product.cuh"

namespace pinzk {

// n words of 64 bits, 16 bytes at a time where n is even; p is aligned to that
struct alignas(16) Quad {
  u64 w[2];
};
template <int N>
PINZK_INLINE Limbs<N> load_words(const u64* p) {
  Limbs<N> r;
  if constexpr (N % 2 == 0) {
    PINZK_UNROLL
    for (int i = 0; i < N; i += 2) {
      const Quad q = *reinterpret_cast<const Quad*>(p + i);
      r.word[i] = q.w[0], r.word[i + 1] = q.w[1];
    }
  } else {
    for (int i = 0; i < N; i++) r.word[i] = p[i];
  }
  return r;
}
template <int N>
PINZK_INLINE void store_words(u64* p, const Limbs<N>& a) {
  if constexpr (N % 2 == 0) {
    PINZK_UNROLL
    for (int i = 0; i < N; i += 2) *reinterpret_cast<Quad*>(p + i) = Quad{{a.word[i], a.word[i + 1]}};
  } else {
    for (int i = 0; i < N; i++) p[i] = a.word[i];
  }
}

// ---- sums of products of lazy residues ----

// sum of a[k] b[k] / R, below 2p, for any sum of products below XY p^2; a[k] < 2p
template <int XY, class F, int K>
PINZK_INLINE Lazy<F> lazy_dot(const u32* const (&a)[K], const u32* const (&b)[K]) {
  static_assert(chain::stays<F>(XY, 4), "one subtraction must do");
  Lazy<F> r;
  chain::dot<F, K>(r.v.w, a, b);
  if constexpr (!chain::stays<F>(XY, 2)) {
    const auto twice_p = Words<F::N>::from(Lazy<F>::twice_p);
    chain::subtract_once<Lazy<F>::W>(r.v.w, r.v.w, twice_p.w);
  }
  return r;
}

// a b; b may be as large as B p
template <int B = 2, class F>
PINZK_INLINE Lazy<F> lazy_mul(const Lazy<F>& a, const Lazy<F>& b) {
  static_assert(chain::holds<F>(3), "two lazy residues do not multiply");
  const u32 *const x[] = {a.v.w}, *const y[] = {b.v.w};
  return lazy_dot<2 * B, F, 1>(x, y);
}

template <class F>
PINZK_INLINE Lazy<F> lazy_square(const Lazy<F>& a) {
  static_assert(chain::holds<F>(5) && chain::stays<F>(4, 2), "a lazy residue does not square");
  Lazy<F> r;
  chain::square<F>(r.v.w, a.v.w);
  return r;
}

// 2p - a, for products: at most 2p
template <class F>
PINZK_INLINE Lazy<F> lazy_minus(const Lazy<F>& a) {
  return loose_sub(Lazy<F>{}, a);
}

// a b + c d
template <class F>
PINZK_INLINE Lazy<F> lazy_dot(const Lazy<F>& a, const Lazy<F>& b, const Lazy<F>& c, const Lazy<F>& d) {
  static_assert(chain::holds<F>(5), "two lazy products do not fit one state");
  const u32 *const x[] = {a.v.w, c.v.w}, *const y[] = {b.v.w, d.v.w};
  return lazy_dot<8, F, 2>(x, y);
}

// a b + c d + e f + g h
template <class F>
PINZK_INLINE Lazy<F> lazy_dot(const Lazy<F>& a, const Lazy<F>& b, const Lazy<F>& c, const Lazy<F>& d, const Lazy<F>& e,
                              const Lazy<F>& f, const Lazy<F>& g, const Lazy<F>& h) {
  if constexpr (chain::holds<F>(9)) {
    const u32 *const x[] = {a.v.w, c.v.w, e.v.w, g.v.w}, *const y[] = {b.v.w, d.v.w, f.v.w, h.v.w};
    return lazy_dot<16, F, 4>(x, y);
  } else {
    return lazy_dot(a, b, c, d) + lazy_dot(e, f, g, h);
  }
}

// ---- elements ----

template <class E>
struct Cold;

template <class F>
struct Single {
  static constexpr int words = F::N;  // of 64 bits, in memory

  Lazy<F> v;

  using Called = Cold<Single>;  // the same with products called
  PINZK_INLINE Called called() const;
  static PINZK_INLINE Single of(const Called& a);

  static PINZK_INLINE Single zero() { return {}; }
  static PINZK_INLINE Single one() { return {{Words<F::N>::from(F::r)}}; }
  static PINZK_INLINE Single load(const u64* p) { return {{Words<F::N>::from(load_words<F::N>(p))}}; }
  PINZK_INLINE void store(u64* p) const { store_words(p, v.v.limbs()); }
  // below p
  PINZK_INLINE Single canonical() const { return {v.canonical()}; }

  // all words zero: false for the residue p
  PINZK_INLINE bool blank() const {
    u32 any = 0;
    PINZK_UNROLL
    for (int i = 0; i < v.W; i++) any |= v.v.w[i];
    return any == 0;
  }
  // 0 or p
  PINZK_INLINE bool is_zero() const {
    u32 other = 0;
    PINZK_UNROLL
    for (int i = 0; i < v.W; i++) other |= v.v.w[i] ^ chain::word32(F::modulus, i);
    return blank() || other == 0;
  }
  // a cheap test that holds for zero, and once in 2^31 otherwise
  PINZK_INLINE bool may_be_zero() const { return v.v.w[0] == 0 || v.v.w[0] == chain::word32(F::modulus, 0); }

  friend PINZK_INLINE Single operator+(const Single& a, const Single& b) { return {a.v + b.v}; }
  friend PINZK_INLINE Single operator-(const Single& a, const Single& b) { return {a.v - b.v}; }
  friend PINZK_INLINE Single operator*(const Single& a, const Single& b) { return {lazy_mul(a.v, b.v)}; }
  PINZK_INLINE Single squared() const { return {lazy_square(v)}; }
  PINZK_COLD Single inverse() const;
  // a b - c d
  static PINZK_INLINE Single cross(const Single& a, const Single& b, const Single& c, const Single& d) {
    return {lazy_dot(a.v, b.v, lazy_minus(c.v), d.v)};
  }
  // of a residue up to p; the negative of 0 is p
  PINZK_INLINE Single negated_if(bool negate) const {
    Single m;
    m.v.v.w[0] = sub_cc(chain::word32(F::modulus, 0), v.v.w[0]);
    PINZK_UNROLL
    for (int i = 1; i < v.W; i++) m.v.v.w[i] = subc_cc(chain::word32(F::modulus, i), v.v.w[i]);
    PINZK_UNROLL
    for (int i = 0; i < v.W; i++) m.v.v.w[i] = negate ? m.v.v.w[i] : v.v.w[i];
    return m;
  }
};

template <class F>
struct Double {
  static constexpr int words = 2 * F::N;

  Lazy<F> v, u;  // v + u i, i^2 = -1

  using Called = Cold<Double>;  // the same with products called
  PINZK_INLINE Called called() const;
  static PINZK_INLINE Double of(const Called& a);

  static PINZK_INLINE Double zero() { return {}; }
  static PINZK_INLINE Double one() { return {Single<F>::one().v, {}}; }
  static PINZK_INLINE Double load(const u64* p) { return {Single<F>::load(p).v, Single<F>::load(p + F::N).v}; }
  PINZK_INLINE void store(u64* p) const { Single<F>{v}.store(p), Single<F>{u}.store(p + F::N); }
  PINZK_INLINE Double canonical() const { return {v.canonical(), u.canonical()}; }

  PINZK_INLINE bool blank() const { return Single<F>{v}.blank() && Single<F>{u}.blank(); }
  PINZK_INLINE bool is_zero() const { return Single<F>{v}.is_zero() && Single<F>{u}.is_zero(); }
  PINZK_INLINE bool may_be_zero() const { return Single<F>{v}.may_be_zero() && Single<F>{u}.may_be_zero(); }

  friend PINZK_INLINE Double operator+(const Double& a, const Double& b) { return {a.v + b.v, a.u + b.u}; }
  friend PINZK_INLINE Double operator-(const Double& a, const Double& b) { return {a.v - b.v, a.u - b.u}; }
  friend PINZK_INLINE Double operator*(const Double& a, const Double& b) {
    return {lazy_dot(a.v, b.v, lazy_minus(a.u), b.u), lazy_dot(a.v, b.u, a.u, b.v)};
  }
  // (v + u)(v - u), 2 v u
  PINZK_INLINE Double squared() const { return {lazy_mul<4>(v - u, loose_add(v, u)), lazy_mul<4>(v, loose_add(u, u))}; }
  PINZK_COLD Double inverse() const {
    const Lazy<F> n = Single<F>{lazy_dot(v, v, u, u)}.inverse().v;
    return {lazy_mul(v, n), lazy_mul(lazy_minus(u), n)};
  }
  static PINZK_INLINE Double cross(const Double& a, const Double& b, const Double& c, const Double& d) {
    const Lazy<F> minus_v = lazy_minus(c.v), minus_u = lazy_minus(c.u);
    return {lazy_dot(a.v, b.v, lazy_minus(a.u), b.u, minus_v, d.v, c.u, d.u),
            lazy_dot(a.v, b.u, a.u, b.v, minus_v, d.u, minus_u, d.v)};
  }
  PINZK_INLINE Double negated_if(bool negate) const {
    return {Single<F>{v}.negated_if(negate).v, Single<F>{u}.negated_if(negate).v};
  }
};

// products as calls: a tenth of the code and of the time to compile, a tenth slower
template <class E>
struct Cold {
  static constexpr int words = E::words;

  E e;

  using Called = Cold;
  PINZK_INLINE Cold called() const { return *this; }
  static PINZK_INLINE Cold of(const Cold& a) { return a; }

  static PINZK_INLINE Cold zero() { return {E::zero()}; }
  static PINZK_INLINE Cold one() { return {E::one()}; }
  static PINZK_INLINE Cold load(const u64* p) { return {E::load(p)}; }
  PINZK_INLINE void store(u64* p) const { e.store(p); }
  PINZK_INLINE Cold canonical() const { return {e.canonical()}; }
  PINZK_INLINE bool blank() const { return e.blank(); }
  PINZK_INLINE bool is_zero() const { return e.is_zero(); }
  PINZK_INLINE bool may_be_zero() const { return e.may_be_zero(); }

  friend PINZK_INLINE Cold operator+(const Cold& a, const Cold& b) { return {a.e + b.e}; }
  friend PINZK_INLINE Cold operator-(const Cold& a, const Cold& b) { return {a.e - b.e}; }
  friend PINZK_INLINE Cold operator*(const Cold& a, const Cold& b) { return {multiply(a.e, b.e)}; }
  PINZK_INLINE Cold squared() const { return {square(e)}; }
  PINZK_INLINE Cold inverse() const { return {e.inverse()}; }
  static PINZK_INLINE Cold cross(const Cold& a, const Cold& b, const Cold& c, const Cold& d) {
    return {multiply(a.e, b.e) - multiply(c.e, d.e)};
  }
  PINZK_INLINE Cold negated_if(bool negate) const { return {e.negated_if(negate)}; }

 private:
  static PINZK_COLD E multiply(E a, E b) { return a * b; }
  static PINZK_COLD E square(E a) { return a.squared(); }
};

template <class F>
PINZK_INLINE Cold<Single<F>> Single<F>::called() const {
  return {*this};
}
template <class F>
PINZK_INLINE Single<F> Single<F>::of(const Cold<Single>& a) {
  return a.e;
}
template <class F>
PINZK_INLINE Cold<Double<F>> Double<F>::called() const {
  return {*this};
}
template <class F>
PINZK_INLINE Double<F> Double<F>::of(const Cold<Double>& a) {
  return a.e;
}

template <class F>
PINZK_COLD Single<F> Single<F>::inverse() const {
  constexpr Limbs<F::N> exponent = minus(F::modulus, derive::small<F::N>(2));
  const Cold<Single> a{*this};
  Cold<Single> x = Cold<Single>::one();
  for (int i = F::bits - 1; i >= 0; i--) {
    x = x.squared();
    if (bit(exponent, i)) x = x * a;
  }
  return x.e;
}

}  // namespace pinzk

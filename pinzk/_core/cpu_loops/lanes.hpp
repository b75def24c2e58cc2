// SPDX-License-Identifier: Apache-2.0
// Lanes<F>: eight elements of F side by side in AVX-512 registers, multiplied by IFMA (docs/arithmetic.md, section 4).
//
// An element is L words of 52 bits. Products divide by R' = 2^(52 L), not by the R = 2^(64 N) of the stored form, and
// R' = 2^S R: a product of a stored value with one in R' form is a stored value. Everything here is compiled for these
// instructions by attribute, and runs only where lanes_available().
#pragma once
#include "fp2.cuh"
#include "machine.hpp"

namespace pinzk::cpu {

// fields with eight-lane arithmetic: those compiled for processors that may have it
template <class F>
constexpr bool has_lanes = false;
#if defined(__x86_64__)
template <class P>
constexpr bool has_lanes<Field<P, Adx>> = true;
template <class F>
constexpr bool has_lanes<Fp2<F>> = has_lanes<F>;
#endif

}  // namespace pinzk::cpu

#if defined(__x86_64__)
// GCC 12 warns of its own header (its bug 105593)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <vector>

#define PINZK_LANES __attribute__((target("avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")))
#define PINZK_LANES_INLINE PINZK_LANES PINZK_INLINE

namespace pinzk::cpu {

inline bool lanes_available() { return level_in_use() >= Level::lanes; }

using Vector = __m512i;

// Memory for what save() writes, in whole cache lines.
class LaneMemory {
 public:
  void resize(size_t words) { lines_.resize((words + 7) / 8); }
  u64* data() { return lines_.data()->word; }

 private:
  struct alignas(64) Line {
    u64 word[8];
  };
  std::vector<Line> lines_;
};

PINZK_LANES_INLINE Vector all(u64 x) { return _mm512_set1_epi64(static_cast<long long>(x)); }

// rows of eight words become columns
PINZK_LANES_INLINE void transpose(Vector* m) {
  Vector even[4], odd[4];
  for (int i = 0; i < 4; i++) {
    even[i] = _mm512_unpacklo_epi64(m[2 * i], m[2 * i + 1]);
    odd[i] = _mm512_unpackhi_epi64(m[2 * i], m[2 * i + 1]);
  }
  for (int k = 0; k < 2; k++) {
    const Vector* t = k ? odd : even;
    const Vector a = _mm512_shuffle_i64x2(t[0], t[1], 0x88), b = _mm512_shuffle_i64x2(t[2], t[3], 0x88);
    const Vector c = _mm512_shuffle_i64x2(t[0], t[1], 0xdd), d = _mm512_shuffle_i64x2(t[2], t[3], 0xdd);
    m[k] = _mm512_shuffle_i64x2(a, b, 0x88);
    m[k + 4] = _mm512_shuffle_i64x2(a, b, 0xdd);
    m[k + 2] = _mm512_shuffle_i64x2(c, d, 0x88);
    m[k + 6] = _mm512_shuffle_i64x2(c, d, 0xdd);
  }
}

// an integer in words of 52 bits
template <int L>
struct Words52 {
  u64 word[L];
};

template <class F>
struct Lanes;

template <class P, class M>
struct Lanes<Field<P, M>> {
  using F = Field<P, M>;
  static constexpr int N = F::N, L = (64 * N + 4 + 51) / 52, S = 52 * L - 64 * N;
  static constexpr int words = N;  // of 64 bits
  static constexpr u64 mask = (u64(1) << 52) - 1, np = F::np & mask;
  // 2^slack p <= R': with a, b < 4p a product is below 2p where slack >= 4, with a, b < 8p where slack >= 6
  static constexpr int slack = 52 * L - F::bits;
  static_assert(slack >= 5);

  // k p
  static constexpr Words52<L> multiple(u64 k) {
    Limbs<N + 2> t{};
    u64 high = 0;
    for (int i = 0; i < N; i++) t.word[i] = mac_portable(F::modulus.word[i], k, high, 0, high);
    t.word[N] = high;
    Words52<L> r{};
    for (int i = 0; i < L; i++) {
      const int at = 52 * i / 64, shift = 52 * i % 64;
      r.word[i] = (t.word[at] >> shift | (shift > 12 ? t.word[at + 1] << (64 - shift) : 0)) & mask;
    }
    return r;
  }
  static constexpr Words52<L> p1 = multiple(1), p2 = multiple(2), p4 = multiple(4);

  Vector word[L];

  // w: `words` vectors of 64-bit words, an integer below R
  static PINZK_LANES_INLINE Lanes from_words(const Vector* w) {
    Lanes r;
    PINZK_UNROLL
    for (int i = 0; i < L; i++) {
      const int at = 52 * i / 64, shift = 52 * i % 64;
      Vector x = _mm512_srlv_epi64(w[at], all(shift));
      if (shift > 12 && at + 1 < N) x = _mm512_shrdv_epi64(w[at], w[at + 1], all(shift));
      r.word[i] = _mm512_and_si512(x, all(mask));
    }
    return r;
  }
  // in: this < R
  PINZK_LANES_INLINE void to_words(Vector* w) const {
    PINZK_UNROLL
    for (int i = 0; i < N; i++) {
      const int at = 64 * i / 52, shift = 64 * i % 52;
      w[i] = _mm512_srlv_epi64(word[at], all(shift));
      if (at + 1 < L) w[i] = _mm512_or_si512(w[i], _mm512_sllv_epi64(word[at + 1], all(52 - shift)));
      if (shift > 40 && at + 2 < L) w[i] = _mm512_or_si512(w[i], _mm512_sllv_epi64(word[at + 2], all(104 - shift)));
    }
  }
  static PINZK_LANES_INLINE Lanes all_lanes(const F& x) {
    Vector w[N];
    for (int i = 0; i < N; i++) w[i] = all(x.limbs.word[i]);
    return from_words(w);
  }

  // every word below 2^52 again; words may be negative, the whole may not
  PINZK_LANES_INLINE Lanes normalised() const {
    Lanes r;
    Vector carry = _mm512_setzero_si512();
    PINZK_UNROLL
    for (int i = 0; i < L; i++) {
      const Vector t = _mm512_add_epi64(word[i], carry);
      carry = _mm512_srai_epi64(t, 52);
      r.word[i] = _mm512_and_si512(t, all(mask));
    }
    return r;
  }
  // integer sum
  friend PINZK_LANES_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
    Lanes r;
    PINZK_UNROLL
    for (int i = 0; i < L; i++) r.word[i] = _mm512_add_epi64(a.word[i], b.word[i]);
    return r.normalised();
  }
  // a - b + k, not negative by the caller's choice of k; words not normalised
  static PINZK_LANES_INLINE Lanes raw_difference(const Lanes& a, const Lanes& b, const Words52<L>& k) {
    Lanes r;
    PINZK_UNROLL
    for (int i = 0; i < L; i++) r.word[i] = _mm512_sub_epi64(_mm512_add_epi64(a.word[i], all(k.word[i])), b.word[i]);
    return r;
  }
  static PINZK_LANES_INLINE Lanes difference(const Lanes& a, const Lanes& b, const Words52<L>& k) {
    return raw_difference(a, b, k).normalised();
  }
  // this - k where that is not negative
  PINZK_LANES_INLINE Lanes reduced(const Words52<L>& k) const {
    Lanes r;
    Vector carry = _mm512_setzero_si512();
    PINZK_UNROLL
    for (int i = 0; i < L; i++) {
      const Vector t = _mm512_add_epi64(_mm512_sub_epi64(word[i], all(k.word[i])), carry);
      carry = _mm512_srai_epi64(t, 52);
      r.word[i] = _mm512_and_si512(t, all(mask));
    }
    const __mmask8 negative = _mm512_movepi64_mask(carry);
    PINZK_UNROLL
    for (int i = 0; i < L; i++) r.word[i] = _mm512_mask_mov_epi64(r.word[i], negative, word[i]);
    return r;
  }
  // in: this < 4p; out: < p
  PINZK_LANES_INLINE Lanes canonical() const { return reduced(p2).reduced(p1); }
  // in: this <= p; out: p - this where chosen
  PINZK_LANES_INLINE Lanes negated_where(__mmask8 chosen) const {
    Lanes r;
    PINZK_UNROLL
    for (int i = 0; i < L; i++) r.word[i] = _mm512_mask_sub_epi64(word[i], chosen, all(p1.word[i]), word[i]);
    return r.normalised();
  }
  PINZK_LANES_INLINE Lanes replaced_where(__mmask8 chosen, const Lanes& other) const {
    Lanes r;
    PINZK_UNROLL
    for (int i = 0; i < L; i++) r.word[i] = _mm512_mask_mov_epi64(word[i], chosen, other.word[i]);
    return r;
  }

  // a b / R' mod p; in: a b < R' p; out: < 2p
  friend PINZK_LANES_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
    if constexpr (L <= 5)
      return product(a, b);
    else
      return product_outline(a, b);  // one copy stays in the instruction cache
  }
  static PINZK_LANES PINZK_OUTLINE Lanes product_outline(const Lanes& a, const Lanes& b) { return product(a, b); }
  // Word by word of b: t += a b_i (low halves), t = (t + m p) / 2^52, and the high halves, kept apart in h for a round so
  // that fewer steps wait for each other.
  static PINZK_LANES_INLINE Lanes product(const Lanes& a, const Lanes& b) {
    const Vector zero = _mm512_setzero_si512();
    Lanes t, h;
    PINZK_UNROLL
    for (int j = 0; j < L; j++) t.word[j] = zero;
    PINZK_UNROLL
    for (int i = 0; i < L; i++) {
      PINZK_UNROLL
      for (int j = 0; j < L; j++) {
        t.word[j] = _mm512_madd52lo_epu64(t.word[j], a.word[j], b.word[i]);
        h.word[j] = _mm512_madd52hi_epu64(zero, a.word[j], b.word[i]);
      }
      const Vector m = _mm512_madd52lo_epu64(zero, t.word[0], all(np));
      PINZK_UNROLL
      for (int j = 0; j < L; j++) {
        t.word[j] = _mm512_madd52lo_epu64(t.word[j], m, all(p1.word[j]));
        h.word[j] = _mm512_madd52hi_epu64(h.word[j], m, all(p1.word[j]));
      }
      const Vector carry = _mm512_srli_epi64(t.word[0], 52);
      PINZK_UNROLL
      for (int j = 0; j + 1 < L; j++) t.word[j] = _mm512_add_epi64(t.word[j + 1], h.word[j]);
      t.word[0] = _mm512_add_epi64(t.word[0], carry);
      t.word[L - 1] = h.word[L - 1];
    }
    return t.normalised();
  }
  PINZK_LANES_INLINE Lanes squared() const { return *this * *this; }

  // this / 2^S mod p: of the R' form the stored form; in: < 4p; out: < 2p
  PINZK_LANES_INLINE Lanes stored() const {
    const Vector m =
        _mm512_and_si512(_mm512_madd52lo_epu64(_mm512_setzero_si512(), word[0], all(np)), all((u64(1) << S) - 1));
    Lanes t = *this;
    PINZK_UNROLL
    for (int j = 0; j < L; j++) {
      t.word[j] = _mm512_madd52lo_epu64(t.word[j], m, all(p1.word[j]));
      if (j + 1 < L) t.word[j + 1] = _mm512_madd52hi_epu64(t.word[j + 1], m, all(p1.word[j]));
    }
    t = t.normalised();
    Lanes r;
    PINZK_UNROLL
    for (int j = 0; j < L; j++) {
      Vector x = _mm512_srli_epi64(t.word[j], S);
      if (j + 1 < L) x = _mm512_or_si512(x, _mm512_sllv_epi64(t.word[j + 1], all(52 - S)));
      r.word[j] = _mm512_and_si512(x, all(mask));
    }
    return r;
  }

  // ---- to and from memory of whole lines (LaneMemory), as it is; L vectors ----
  PINZK_LANES_INLINE void save(u64* at) const {
    for (int i = 0; i < L; i++) _mm512_store_si512(at + 8 * i, word[i]);
  }
  static PINZK_LANES_INLINE Lanes load(const u64* at) {
    Lanes r;
    for (int i = 0; i < L; i++) r.word[i] = _mm512_load_si512(at + 8 * i);
    return r;
  }
  static constexpr int saved = 8 * L;  // words that save() writes

  // ---- eight elements one by one; values as integers, below 2p when read ----
  static void lane_values(const u64* at, F* out) {
    for (int lane = 0; lane < 8; lane++) {
      F x = F::zero();
      for (int i = 0; i < L; i++) {
        const u64 w = at[8 * i + lane];
        const int to = 52 * i / 64, shift = 52 * i % 64;
        x.limbs.word[to] |= w << shift;
        if (shift > 12 && to + 1 < N) x.limbs.word[to + 1] |= w >> (64 - shift);
      }
      out[lane] = M::reduced(x);
    }
  }
  static PINZK_LANES_INLINE Lanes from_values(const F* x) {
    Vector w[N];
    for (int j = 0; j < N; j++) {
      u64 t[8];
      for (int lane = 0; lane < 8; lane++) t[lane] = x[lane].limbs.word[j];
      w[j] = _mm512_loadu_si512(t);
    }
    return from_words(w);
  }
  // R' mod p, the R' form's one, and 2^(2S): inverses of values in R' form, taken in F, times this are in R' form
  static constexpr F one_value() { return {derive::power_of_two(52 * L, F::modulus)}; }
  static F inverse_factor() { return F::from_canonical(derive::power_of_two(2 * S, F::modulus)); }
};

template <class B>
struct Lanes<Fp2<B>> {
  using F = Fp2<B>;
  using Base = Lanes<B>;
  static constexpr int words = 2 * Base::words, saved = 2 * Base::saved;
  static_assert(Base::slack >= 6, "sums of two go into products");

  Base c0, c1;

  static PINZK_LANES_INLINE Lanes from_words(const Vector* w) {
    return {Base::from_words(w), Base::from_words(w + Base::words)};
  }
  PINZK_LANES_INLINE void to_words(Vector* w) const { c0.to_words(w), c1.to_words(w + Base::words); }
  template <class K>
  static PINZK_LANES_INLINE Lanes difference(const Lanes& a, const Lanes& b, const K& k) {
    return {Base::difference(a.c0, b.c0, k), Base::difference(a.c1, b.c1, k)};
  }
  static constexpr auto p1 = Base::p1, p2 = Base::p2;
  PINZK_LANES_INLINE Lanes canonical() const { return {c0.canonical(), c1.canonical()}; }
  PINZK_LANES_INLINE Lanes negated_where(__mmask8 chosen) const {
    return {c0.negated_where(chosen), c1.negated_where(chosen)};
  }
  PINZK_LANES_INLINE Lanes replaced_where(__mmask8 chosen, const Lanes& o) const {
    return {c0.replaced_where(chosen, o.c0), c1.replaced_where(chosen, o.c1)};
  }
  PINZK_LANES_INLINE Lanes stored() const { return {c0.stored(), c1.stored()}; }

  // in: < 4p; out: < 2p
  friend PINZK_LANES PINZK_OUTLINE Lanes operator*(const Lanes& a, const Lanes& b) {
    const Base x = a.c0 * b.c0, y = a.c1 * b.c1, z = (a.c0 + a.c1) * (b.c0 + b.c1);
    return {Base::difference(x, y, Base::p2).reduced(Base::p2),
            Base::difference(z, x + y, Base::p4).reduced(Base::p4).reduced(Base::p2)};
  }
  PINZK_LANES PINZK_OUTLINE Lanes squared() const {
    const Base x = c0 * c1;
    return {(c0 + c1) * Base::difference(c0, c1, Base::p4), (x + x).reduced(Base::p2)};
  }

  PINZK_LANES_INLINE void save(u64* at) const { c0.save(at), c1.save(at + Base::saved); }
  static PINZK_LANES_INLINE Lanes load(const u64* at) { return {Base::load(at), Base::load(at + Base::saved)}; }
  static void lane_values(const u64* at, F* out) {
    B x[8], y[8];
    Base::lane_values(at, x);
    Base::lane_values(at + Base::saved, y);
    for (int i = 0; i < 8; i++) out[i] = {x[i], y[i]};
  }
  static PINZK_LANES_INLINE Lanes from_values(const F* v) {
    B x[8], y[8];
    for (int i = 0; i < 8; i++) x[i] = v[i].c0, y[i] = v[i].c1;
    return {Base::from_values(x), Base::from_values(y)};
  }
  static constexpr F one_value() { return {Base::one_value(), B::zero()}; }
  static F inverse_factor() { return {Base::inverse_factor(), B::zero()}; }
};

}  // namespace pinzk::cpu

#endif

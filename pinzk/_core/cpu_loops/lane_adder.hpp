// SPDX-License-Identifier: Apache-2.0
// LaneAdder: affine additions as PairAdder's, eight side by side (docs/arithmetic.md, section 7).
//
// Stored coordinates go into products as they are: with slope = rise * inverse in R' form, slope * (slope / 2^S) and
// slope * (x1 - x3) are stored values again. Pairs without a plain slope (infinity, equal x) are left to the caller.
#pragma once
#include <cstdint>
#include <vector>

#include "lanes.hpp"
#include "term.hpp"

#if defined(__x86_64__)

namespace pinzk::cpu {

template <class F>
class LaneAdder {
 public:
  using V = Lanes<F>;
  static constexpr size_t least_pairs = 64;  // below, the last inversion and padding cost more than is won

  // out[i] = terms[2i] + terms[2i + 1], but for the pairs whose numbers are put into `special`
  PINZK_LANES __attribute__((noinline)) void add(const Term<F>* terms, size_t pairs, Affine<F>* out,
                                                 std::vector<std::uint32_t>& special) {
    const size_t blocks = (pairs + 7) / 8;
    below_.resize(blocks * V::saved);
    before_.resize(blocks * V::saved);
    Term<F> padded[16];
    pad(terms, pairs, padded);
    auto block_terms = [&](size_t b) { return b * 8 + 8 <= pairs ? terms + 16 * b : padded; };
    F ones[8];
    for (F& x : ones) x = V::one_value();
    const V one = V::from_values(ones);
    V running[2] = {one, one};  // two chains, so that one product need not wait for the other
    for (size_t b = 0; b < blocks; b++) {
      if (b + ahead < blocks) prefetch(terms + 16 * (b + ahead), std::min<size_t>(8, pairs - 8 * (b + ahead)));
      const Term<F>* t = block_terms(b);
      Vector left[words], right[words];
      load(t, left);
      load(t + 1, right);
      const __mmask8 odd = unusual(left, right);
      if (__builtin_expect(odd, 0))
        for (int i = 0; i < 8; i++)
          if (odd >> i & 1 && 8 * b + i < pairs) special.push_back(static_cast<std::uint32_t>(8 * b + i));
      const V d = V::difference(V::from_words(right), V::from_words(left), V::p1).replaced_where(odd, one);
      V& chain = running[b & 1];
      d.save(below_.data() + b * V::saved);
      chain.save(before_.data() + b * V::saved);
      chain = chain * d;
    }
    invert(running);
    for (size_t b = blocks; b-- > 0;) {
      if (b >= ahead) prefetch(terms + 16 * (b - ahead), 8);
      const Term<F>* t = block_terms(b);
      Vector w[words];
      load(t, w);
      const V x1 = V::from_words(w), y1 = V::from_words(w + V::words).negated_where(signs(t));
      load(t + 1, w);
      const V x2 = V::from_words(w), y2 = V::from_words(w + V::words).negated_where(signs(t + 1));
      V& chain = running[b & 1];
      const V slope = chain * V::load(before_.data() + b * V::saved) * V::difference(y2, y1, V::p1);
      chain = chain * V::load(below_.data() + b * V::saved);
      const V x = V::difference(V::difference(slope * slope.stored(), x1, V::p1), x2, V::p1).canonical();
      const V y = V::difference(slope * V::difference(x1, x, V::p1), y1, V::p1).canonical();
      x.to_words(w);
      y.to_words(w + V::words);
      if (b * 8 + 8 <= pairs) {
        store(w, out + 8 * b);
      } else {
        Affine<F> last[8];
        store(w, last);
        for (size_t i = 8 * b; i < pairs; i++) out[i] = last[i - 8 * b];
      }
    }
  }

 private:
  static constexpr int words = 2 * V::words;  // of a point
  static constexpr size_t ahead = 2;

  // the last, incomplete block: filled up with a pair that has a slope
  static void pad(const Term<F>* terms, size_t pairs, Term<F>* padded) {
    static const Affine<F> filling[2] = {{F::zero(), F::one()}, {F::one(), F::one()}};
    const size_t first = pairs / 8 * 8;
    for (size_t i = 0; i < 16; i++) padded[i] = 2 * first + i < 2 * pairs ? terms[2 * first + i] : Term<F>(&filling[i & 1]);
  }

  static void prefetch(const Term<F>* terms, size_t pairs) {
    for (size_t i = 0; i < 2 * pairs; i++) terms[i].prefetch();
  }

  // words of the points of every other term
  static PINZK_LANES_INLINE void load(const Term<F>* terms, Vector* w) {
    PINZK_UNROLL
    for (int g = 0; g < words; g += 8) {
      const int at = g + 8 <= words ? g : words - 8;  // the last group may overlap the one before
      Vector m[8];
      PINZK_UNROLL
      for (int i = 0; i < 8; i++) m[i] = _mm512_loadu_si512(reinterpret_cast<const u64*>(&terms[2 * i].point()) + at);
      transpose(m);
      PINZK_UNROLL
      for (int i = 0; i < 8; i++) w[at + i] = m[i];
    }
  }

  static PINZK_LANES_INLINE void store(const Vector* w, Affine<F>* out) {
    PINZK_UNROLL
    for (int g = 0; g < words; g += 8) {
      const int at = g + 8 <= words ? g : words - 8;
      Vector m[8];
      PINZK_UNROLL
      for (int i = 0; i < 8; i++) m[i] = w[at + i];
      transpose(m);
      PINZK_UNROLL
      for (int i = 0; i < 8; i++) _mm512_storeu_si512(reinterpret_cast<u64*>(out + i) + at, m[i]);
    }
  }

  static __mmask8 signs(const Term<F>* terms) {
    unsigned s = 0;
    for (int i = 0; i < 8; i++) s |= unsigned(terms[2 * i].negative()) << i;
    return static_cast<__mmask8>(s);
  }

  // lanes with equal x, or with an x of zero (which infinity has)
  static PINZK_LANES_INLINE __mmask8 unusual(const Vector* left, const Vector* right) {
    Vector differ = _mm512_setzero_si512(), l = differ, r = differ;
    PINZK_UNROLL
    for (int i = 0; i < V::words; i++) {
      differ = _mm512_or_si512(differ, _mm512_xor_si512(left[i], right[i]));
      l = _mm512_or_si512(l, left[i]);
      r = _mm512_or_si512(r, right[i]);
    }
    return _mm512_testn_epi64_mask(differ, differ) | _mm512_testn_epi64_mask(l, l) | _mm512_testn_epi64_mask(r, r);
  }

  // 1 / x of both chains' lanes, by one inversion
  static PINZK_LANES_INLINE void invert(V* chains) {
    F x[16], before[16], total = F::one();
    for (int c = 0; c < 2; c++) {
      alignas(64) u64 at[V::saved];
      chains[c].save(at);
      V::lane_values(at, x + 8 * c);
    }
    for (int i = 0; i < 16; i++) {
      before[i] = total;
      total *= x[i];
    }
    total = total.inverse() * V::inverse_factor();
    for (int i = 16; i-- > 0;) {
      before[i] *= total;
      total *= x[i];
      x[i] = before[i];
    }
    for (int c = 0; c < 2; c++) chains[c] = V::from_values(x + 8 * c);
  }

  LaneMemory below_, before_;  // denominators, and the product of all before each, eight by eight
};

}  // namespace pinzk::cpu

#endif

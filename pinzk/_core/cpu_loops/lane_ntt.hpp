// SPDX-License-Identifier: Apache-2.0
// The passes of ntt.hpp, eight butterflies side by side (docs/arithmetic.md, section 6).
//
// Eight neighbours are a row. A tile holds rows as Lanes, below 4p, between one conversion in and one out. The three levels
// inside a row are done eight rows at a time, transposed, so that a lane is a row and twiddles lie side by side too.
#pragma once
#include "lanes.hpp"

#if defined(__x86_64__)

namespace pinzk::cpu {

template <class F>
struct LaneTransform {
  using V = Lanes<F>;
  static constexpr int least_levels = 6;  // of a whole block: eight rows

  // rows of `columns` = 8 at distance `rest`, as in ntt.hpp's pass
  template <bool dif>
  PINZK_LANES __attribute__((noinline)) static void tile_pass(F* at, size_t rest, int levels, const F* twiddles,
                                                              size_t block, LaneMemory& tile) {
    const size_t rows = size_t(1) << levels;
    tile.resize(rows * V::saved);
    for (size_t r = 0; r < rows; r++) load_row(at + r * rest).save(tile.data() + r * V::saved);
    row_levels<dif>(tile.data(), levels, twiddles, block);
    for (size_t r = 0; r < rows; r++) store_row(at + r * rest, V::load(tile.data() + r * V::saved).canonical());
  }

  // all levels of a block of 2^levels neighbours
  template <bool dif>
  PINZK_LANES __attribute__((noinline)) static void block_pass(F* x, int levels, const F* twiddles, size_t block,
                                                               LaneMemory& tile) {
    const size_t rows = size_t(1) << (levels - 3);
    tile.resize(rows * V::saved);
    if constexpr (dif) {
      for (size_t r = 0; r < rows; r++) load_row(x + 8 * r).save(tile.data() + r * V::saved);
      row_levels<dif>(tile.data(), levels - 3, twiddles, block);
    }
    for (size_t r = 0; r < rows; r += 8) last_levels<dif>(x + 8 * r, twiddles, block * rows + r, tile.data() + r * V::saved);
    if constexpr (!dif) {
      row_levels<dif>(tile.data(), levels - 3, twiddles, block);
      for (size_t r = 0; r < rows; r++) store_row(x + 8 * r, V::load(tile.data() + r * V::saved).canonical());
    }
  }

 private:
  static_assert(F::N == 4, "a row is four vectors");
  static constexpr int order[8] = {0, 2, 1, 3, 4, 6, 5, 7};  // of a row's elements in its lanes

  static PINZK_LANES_INLINE V load_row(const F* x) {
    Vector z[4];
    for (int i = 0; i < 4; i++) z[i] = _mm512_loadu_si512(x + 2 * i);
    const Vector a = _mm512_unpacklo_epi64(z[0], z[1]), b = _mm512_unpackhi_epi64(z[0], z[1]);
    const Vector c = _mm512_unpacklo_epi64(z[2], z[3]), d = _mm512_unpackhi_epi64(z[2], z[3]);
    const Vector w[4] = {_mm512_shuffle_i64x2(a, c, 0x88), _mm512_shuffle_i64x2(b, d, 0x88),
                         _mm512_shuffle_i64x2(a, c, 0xdd), _mm512_shuffle_i64x2(b, d, 0xdd)};
    return V::from_words(w);
  }
  static PINZK_LANES_INLINE void store_row(F* x, const V& v) {
    Vector w[4];
    v.to_words(w);
    const Vector lower = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), upper = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const Vector a = _mm512_unpacklo_epi64(w[0], w[1]), b = _mm512_unpacklo_epi64(w[2], w[3]);
    const Vector c = _mm512_unpackhi_epi64(w[0], w[1]), d = _mm512_unpackhi_epi64(w[2], w[3]);
    _mm512_storeu_si512(x, _mm512_permutex2var_epi64(a, lower, b));
    _mm512_storeu_si512(x + 2, _mm512_permutex2var_epi64(c, lower, d));
    _mm512_storeu_si512(x + 4, _mm512_permutex2var_epi64(a, upper, b));
    _mm512_storeu_si512(x + 6, _mm512_permutex2var_epi64(c, upper, d));
  }

  // (u, v) -> (u + z v, u - z v); in and out: < 4p
  static PINZK_LANES_INLINE void forward(V& u, V& v, const V& z) {
    const V a = u.reduced(V::p2), b = v * z;
    u = a + b;
    v = V::difference(a, b, V::p2);
  }
  // (u, v) -> (u + v, z (u - v)); in and out: < 2p
  static PINZK_LANES_INLINE void backward(V& u, V& v, const V& z) {
    const V a = u, b = v;
    u = (a + b).reduced(V::p2);
    v = V::difference(a, b, V::p2) * z;
  }

  // a twiddle in R' form in every lane
  static PINZK_LANES_INLINE V everywhere(F z) {
    for (int i = 0; i < V::S; i++) z = z.doubled();
    return V::all_lanes(z);
  }

  template <bool dif>
  static PINZK_LANES_INLINE void row_levels(u64* tile, int levels, const F* twiddles, size_t block) {
    for (int i = 0; i < levels; i++) {
      const int t = dif ? i : levels - 1 - i;
      const size_t half = (size_t(1) << (levels - t - 1)) * V::saved;
      u64* a = tile;
      for (size_t s = block << t; s < (block + 1) << t; s++, a += 2 * half) {
        const V z = everywhere(twiddles[s]);
        for (size_t k = 0; k < half; k += V::saved) {
          V u = V::load(a + k), v = V::load(a + half + k);
          if constexpr (dif)
            forward(u, v, z);
          else
            backward(u, v, z);
          u.save(a + k);
          v.save(a + half + k);
        }
      }
    }
  }

  // Two neighbouring elements of each of eight places, `stride` apart, the places in the lanes' order.
  static PINZK_LANES_INLINE void load_pairs(const F* x, size_t stride, Vector* w) {
    for (int i = 0; i < 8; i++) w[i] = _mm512_loadu_si512(x + order[i] * stride);
    transpose(w);
  }
  // twiddles come in R' form by a shift, below 16p: the other factor must be below 2p
  static_assert(V::S == 4 && V::slack >= 5);
  static PINZK_LANES_INLINE V twiddle(const Vector* w) {
    V z;
    for (int i = 0; i < V::L; i++) {
      const int from = 52 * i - V::S, at = i ? from / 64 : 0, shift = i ? from % 64 : 0;
      Vector x = i ? _mm512_srlv_epi64(w[at], all(shift)) : _mm512_sllv_epi64(w[0], all(V::S));
      if (i && shift > 12 && at + 1 < 4) x = _mm512_shrdv_epi64(w[at], w[at + 1], all(shift));
      z.word[i] = _mm512_and_si512(x, all(V::mask));
    }
    return z;
  }

  // The three levels inside rows, for eight rows: DIF from the tile to memory, DIT from memory to the tile. `row` is the
  // first one's number in the whole transform.
  template <bool dif>
  static PINZK_LANES_INLINE void last_levels(F* x, const F* twiddles, size_t row, u64* tile) {
    V e[8];  // e[j]: element j of each row
    if constexpr (dif) {
      for (int l = 0; l < V::L; l++) {
        Vector m[8];
        for (int i = 0; i < 8; i++) m[i] = _mm512_load_si512(tile + order[i] * V::saved + 8 * l);
        transpose(m);
        for (int i = 0; i < 8; i++) e[order[i]].word[l] = m[i];
      }
    } else {
      for (int j = 0; j < 8; j += 2) {
        Vector w[8];
        load_pairs(x + j, 8, w);
        e[j] = V::from_words(w);
        e[j + 1] = V::from_words(w + 4);
      }
    }
    for (int i = 0; i < 3; i++) {
      const int level = dif ? i : 2 - i, half = 4 >> level;
      Vector w[8];
      V z[4];
      if (level == 0) {
        z[0] = narrow_twiddles(twiddles + row);
      } else {
        for (int s = 0; s < 1 << level; s += 2) {
          load_pairs(twiddles + (row << level) + s, size_t(1) << level, w);
          z[s] = twiddle(w);
          z[s + 1] = twiddle(w + 4);
        }
      }
      for (int s = 0; s < 1 << level; s++)
        for (int k = 0; k < half; k++) {
          V &u = e[2 * half * s + k], &v = e[2 * half * s + half + k];
          if constexpr (dif) {
            v = v.reduced(V::p2);
            forward(u, v, z[s]);
          } else {
            const V a = u, b = v;
            u = (a + b).reduced(V::p2);
            v = V::difference(a, b, V::p2).reduced(V::p2) * z[s];
          }
        }
    }
    if constexpr (dif) {
      for (int j = 0; j < 8; j += 2) {
        Vector w[8];
        e[j].canonical().to_words(w);
        e[j + 1].canonical().to_words(w + 4);
        transpose(w);
        for (int i = 0; i < 8; i++) _mm512_storeu_si512(x + j + 8 * order[i], w[i]);
      }
    } else {
      for (int l = 0; l < V::L; l++) {
        Vector m[8];
        for (int i = 0; i < 8; i++) m[i] = e[order[i]].word[l];
        transpose(m);
        for (int i = 0; i < 8; i++) _mm512_store_si512(tile + order[i] * V::saved + 8 * l, m[i]);
      }
    }
  }

  // eight neighbouring twiddles in the lanes' order
  static PINZK_LANES_INLINE V narrow_twiddles(const F* z) {
    V v = load_row(z);
    for (int i = 0; i < V::S; i++) v = (v + v).reduced(V::p1);
    return v;
  }
};

}  // namespace pinzk::cpu

#endif

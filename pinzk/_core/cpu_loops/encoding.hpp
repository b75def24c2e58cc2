// SPDX-License-Identifier: Apache-2.0
// Uncompressed points as bellman and Zcash write them: x then y, each big-endian and canonical, of Fp2 the part c1 first.
//
// A point takes as many bytes encoded as it does as words, so a file is read straight into its final array and decoded in
// place. The first byte has three flags: compressed, infinity, larger y.
#pragma once
#include "points.hpp"

namespace pinzk::cpu {

constexpr word flag_compressed = 0x80, flag_infinity = 0x40, flag_larger = 0x20;

// one element from or to big-endian bytes; in and out do not overlap
template <int N>
Limbs<N> swapped(const Limbs<N>& x) {
  Limbs<N> r;
  for (int i = 0; i < N; i++) r.word[i] = __builtin_bswap64(x.word[N - 1 - i]);
  return r;
}

// F is the field of the coordinates, Fp the prime field under it.
// Which element of the encoding holds element i of a row: of Fp2 the parts change places.
template <class F, class Fp>
constexpr int place_of(int i) {
  return sizeof(F) == sizeof(Fp) ? i : i ^ 1;
}

// Decodes the row at p in place, or leaves it as it is where it is no finite point with coordinates below q. Whether the
// point is on its curve is not looked at, but (0, 0), which would turn into infinity, is not.
template <class F, class Fp>
Fault decode_point(word* p) {
  constexpr int n = sizeof(Affine<F>) / sizeof(Fp);
  const word flags = p[0] & 0xe0;  // little-endian words: the first byte of the encoding is the lowest one
  if (flags & (flag_compressed | flag_larger)) return Fault::encoding;
  Limbs<Fp::N> x[n];
  u64 any = 0;
  for (int i = 0; i < n; i++) {
    x[i] = rows<Limbs<Fp::N>>(p)[place_of<F, Fp>(i)];
    if (place_of<F, Fp>(i) == 0) x[i].word[0] &= ~u64{0xe0};
    for (int j = 0; j < Fp::N; j++) any |= x[i].word[j];
    x[i] = swapped(x[i]);
  }
  if (flags & flag_infinity) return any ? Fault::encoding : Fault::infinity;
  for (int i = 0; i < n; i++)
    if (!less(x[i], Fp::modulus)) return Fault::coordinate;
  if (!any) return Fault::curve;
  for (int i = 0; i < n; i++) rows<Fp>(p)[i] = Fp::from_canonical(x[i]);
  return Fault::none;
}

template <class F, class Fp>
BadPoint decode_points(word* points, size_t n, const Job& job) {
  constexpr size_t step = sizeof(Affine<F>) / sizeof(word);
  const size_t i =
      first_index(n, point_grain, job, [=](size_t k) { return decode_point<F, Fp>(points + k * step) != Fault::none; });
  return {i, i < n ? decode_point<F, Fp>(points + i * step) : Fault::none};
}

// out may be points; infinity (all zeros) becomes its flag
template <class F, class Fp>
void encode_points(const word* points, word* out, size_t n, const Job& job) {
  constexpr int elements = sizeof(Affine<F>) / sizeof(Fp);
  parallel_for(n, point_grain, job, [=](size_t begin, size_t end, int) {
    for (size_t k = begin; k < end; k++) {
      const bool infinity = rows<Affine<F>>(points)[k].is_infinity();
      Limbs<Fp::N> x[elements];
      for (int i = 0; i < elements; i++) x[place_of<F, Fp>(i)] = swapped(rows<Fp>(points)[k * elements + i].to_canonical());
      if (infinity) x[0].word[0] |= flag_infinity;
      for (int i = 0; i < elements; i++) rows<Limbs<Fp::N>>(out)[k * elements + i] = x[i];
    }
  });
}

}  // namespace pinzk::cpu

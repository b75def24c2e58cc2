// SPDX-License-Identifier: Apache-2.0
// Number-theoretic transforms over Fr: DIF (natural in, bit-reversed out) and DIT (the reverse), in place.
//
// A transform, a pointwise step and another transform never permute. Level l cuts the array into 2^l blocks; a block has one
// twiddle, w^brev(block), so the bit-reversed table serves every level from its start (docs/arithmetic.md, section 6). DIF
// is (a, b) -> (a + z b, a - z b) from level 0 on, DIT its transpose (a, b) -> (a + b, z (a - b)) from the last level back.
// Memory is passed over once per `pass`: as many levels as a block in cache allows.
#pragma once
#include "elements.hpp"
#include "lane_ntt.hpp"

namespace pinzk::cpu {

enum class Order { dif, dit };

// The levels of a pass on `rows` = 2^levels rows of `columns` elements, which lie in block `block` of level `first`.
template <Order order, class V>
void levels_on_rows(V* x, int levels, size_t columns, const V* twiddles, size_t block) {
  for (int i = 0; i < levels; i++) {
    const int t = order == Order::dif ? i : levels - 1 - i;
    const size_t half = (size_t(1) << (levels - t - 1)) * columns;
    V* a = x;
    for (size_t s = block << t; s < (block + 1) << t; s++, a += 2 * half) {
      const V z = twiddles[s];
      V* const b = a + half;
      if (s == 0) {
        for (size_t k = 0; k < half; k++) {
          const V u = a[k], v = b[k];
          a[k] = u + v;
          b[k] = u - v;
        }
      } else if (order == Order::dif) {
        for (size_t k = 0; k < half; k++) {
          const V u = a[k], v = b[k] * z;
          a[k] = u + v;
          b[k] = u - v;
        }
      } else {
        for (size_t k = 0; k < half; k++) {
          const V u = a[k], v = b[k];
          a[k] = u + v;
          b[k] = (u - v) * z;
        }
      }
    }
  }
}

// false if the pass is too small for lanes
template <Order order, class F>
bool pass_by_lanes(F* x, int first, int levels, size_t rest, const F* twiddles, const Job& job) {
  using Lane = LaneTransform<F>;
  constexpr bool dif = order == Order::dif;
  if (rest == 1 ? levels < Lane::least_levels : rest < 8) return false;
  std::vector<LaneMemory> tiles(job.threads);
  const size_t groups = rest == 1 ? 1 : rest / 8;
  parallel_for(groups << first, 1, job, [&](size_t task, size_t, int worker) {
    const size_t block = task / groups;
    F* const at = x + (block << levels) * rest + task % groups * 8;
    if (rest == 1)
      Lane::template block_pass<dif>(at, levels, twiddles, block, tiles[worker]);
    else
      Lane::template tile_pass<dif>(at, rest, levels, twiddles, block, tiles[worker]);
  });
  return true;
}

// One pass over memory: levels [first, first + levels) of a transform of 2^log_n.
template <Order order, class F>
void pass(F* x, int log_n, int first, int levels, const F* twiddles, const Job& job) {
  const size_t rest = size_t(1) << (log_n - first - levels);  // distance of a block's rows
  if constexpr (has_lanes<F>) {
    if (lanes_available() && pass_by_lanes<order>(x, first, levels, rest, twiddles, job)) return;
  }
  if (rest == 1) {
    parallel_for(size_t(1) << first, 1, job, [=](size_t block, size_t, int) {
      levels_on_rows<order>(x + (block << levels), levels, 1, twiddles, block);
    });
    return;
  }
  const size_t columns = std::min<size_t>(rest, 8), groups = rest / columns, rows = size_t(1) << levels;
  parallel_for(groups << first, 1, job, [=](size_t task, size_t, int) {
    const size_t block = task / groups, column = task % groups * columns;
    F* const at = x + ((block << levels) * rest + column);
    std::vector<F> tile(rows * columns);
    for (size_t r = 0; r < rows; r++) std::copy_n(at + r * rest, columns, &tile[r * columns]);
    levels_on_rows<order>(tile.data(), levels, columns, twiddles, block);
    for (size_t r = 0; r < rows; r++) std::copy_n(&tile[r * columns], columns, at + r * rest);
  });
}

// the levels of each pass, those of whole blocks last: such a block fits the second-level cache, a tile the first
inline std::vector<int> passes(int log_n) {
  constexpr int block = 13, tile = 7;
  if (log_n <= 10) return {log_n};
  const int inner = std::min(block, log_n - 4);
  const int outer = (log_n - inner + tile - 1) / tile;
  std::vector<int> out;
  for (int i = 0; i < outer; i++) out.push_back((log_n - inner) * (i + 1) / outer - (log_n - inner) * i / outer);
  out.push_back(inner);
  return out;
}

template <Order order, class F>
void transform(word* data, int log_n, const word* twiddles, const Job& job) {
  const std::vector<int> levels = passes(log_n);
  const int count = static_cast<int>(levels.size());
  std::vector<int> first(count);
  for (int i = 1; i < count; i++) first[i] = first[i - 1] + levels[i - 1];
  for (int k = 0; k < count; k++) {
    const int i = order == Order::dif ? k : count - 1 - k;
    pass<order>(rows<F>(data), log_n, first[i], levels[i], rows<F>(twiddles), job);
  }
}

inline size_t reversed_bits(size_t i, int bits) {
  size_t r = 0;
  for (int k = 0; k < bits; k++) r |= (i >> k & 1) << (bits - 1 - k);
  return r;
}

// An index is (high, middle, low), high and low of q bits: for each middle a tile of 2^q rows of 2^q neighbours changes
// places with its partner's transposed tile, so that whole cache lines move.
template <class F>
void bit_reverse(word* data, int log_n, const Job& job) {
  F* const x = rows<F>(data);
  constexpr int q = 3;
  if (log_n < 2 * q) {
    for (size_t i = 0; i < size_t(1) << log_n; i++) {
      const size_t j = reversed_bits(i, log_n);
      if (i < j) std::swap(x[i], x[j]);
    }
    return;
  }
  constexpr size_t side = size_t(1) << q;
  size_t turned[side];
  for (size_t i = 0; i < side; i++) turned[i] = reversed_bits(i, q);
  const int middle_bits = log_n - 2 * q, high_at = log_n - q;
  parallel_for(size_t(1) << middle_bits, 64, job, [=](size_t begin, size_t end, int) {
    for (size_t middle = begin; middle < end; middle++) {
      const size_t partner = reversed_bits(middle, middle_bits);
      if (partner < middle) continue;
      F tile[side][side];
      F *const a = x + (middle << q), *const b = x + (partner << q);
      for (size_t h = 0; h < side; h++)
        for (size_t l = 0; l < side; l++) tile[turned[l]][turned[h]] = a[(h << high_at) + l];
      if (partner != middle)
        for (size_t h = 0; h < side; h++)
          for (size_t l = 0; l < side; l++) a[(turned[l] << high_at) + turned[h]] = b[(h << high_at) + l];
      for (size_t h = 0; h < side; h++) std::copy_n(tile[h], side, b + (h << high_at));
    }
  });
}

}  // namespace pinzk::cpu

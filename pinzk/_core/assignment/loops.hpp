// SPDX-License-Identifier: Apache-2.0
// Loops of an assignment: rows copied on threads and checked on the way, bits appended to bits.
#pragma once
#include <cstdint>
#include <cstring>

#include "parallel.hpp"

namespace pinzk::assignment {

using cpu::Job;
using std::size_t;
using word = std::uint64_t;

constexpr size_t copy_grain = 1 << 14;  // rows: half a MiB
constexpr int words_per_row = 4;

inline bool below(const word* x, const word* modulus) {
  for (int i = words_per_row - 1; i >= 0; i--)
    if (x[i] != modulus[i]) return x[i] < modulus[i];
  return false;
}

// out = in, n rows of a scalar field. Returns the smallest index of a row that is not below the modulus, n if all are;
// out is then unspecified.
inline size_t copy_reduced(const word* in, word* out, size_t n, const word* modulus, const Job& job) {
  std::atomic<size_t> first{n};
  cpu::parallel_for(n, copy_grain, job, [&](size_t begin, size_t end, int) {
    for (size_t i = begin; i < end; i++)
      if (!below(in + i * words_per_row, modulus)) {
        size_t seen = first.load();
        while (i < seen && !first.compare_exchange_weak(seen, i)) {
        }
        return;
      }
    std::memcpy(out + begin * words_per_row, in + begin * words_per_row, (end - begin) * words_per_row * sizeof(word));
  });
  return first;
}

// The bits [first, end) of `from` behind the n bits of `to`; bits behind the last one are zero in both.
inline void append_bits(std::vector<word>& to, size_t n, const std::vector<word>& from, size_t first, size_t end) {
  to.resize((n + (end - first) + 63) / 64);
  for (size_t i = first; i < end;) {
    const size_t at = n + (i - first), taken = std::min({64 - at % 64, 64 - i % 64, end - i});
    word piece = from[i / 64] >> (i % 64);
    if (taken < 64) piece &= (word{1} << taken) - 1;
    to[at / 64] |= piece << (at % 64);
    i += taken;
  }
}

inline size_t count_bits(const std::vector<word>& bits) {
  size_t count = 0;
  for (const word w : bits) count += static_cast<size_t>(__builtin_popcountll(w));
  return count;
}

}  // namespace pinzk::assignment

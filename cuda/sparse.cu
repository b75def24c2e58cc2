// SPDX-License-Identifier: Apache-2.0
// Sparse constraint rows on a witness: A w, B w, C w.
//
// Most coefficients are 1 or -1. They are *units*: a column (u32) with the sign in bit 31. The others are *products*: a
// column and the number, of one, two or four bytes, of a coefficient in a dictionary. Entries of a row lie behind each other
// in both lists. Witness and dictionary are in Montgomery form. A thread adds up its row's units; the products of 32 rows
// are shared out among the lanes of their warp, whatever row they belong to, so that few lanes idle while others multiply. A
// long row has a warp of its own. Counts, and versions tried: docs/kernels.md.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "elements.cuh"

namespace pinzk {

constexpr int warps = 8;  // of a block

struct Entries {
  const u32 *units, *columns;
  const void* codes;
  u32 width;  // bytes of a code
  const u64 *dictionary, *witness;

  // sum += the units begin, begin + step, .. below end: two loads under way at a time
  PINZK_INLINE void add_units(Fr& sum, u32 begin, u32 end, u32 step) const {
    for (u32 k = begin; k < end; k += 2 * step) {
      const bool second = k + step < end;
      const u32 u = units[k], v = second ? units[k + step] : 0;
      const Fr x = load(witness + 4 * u64(u & 0x7fffffffu));
      const Fr y = second ? load(witness + 4 * u64(v & 0x7fffffffu)) : Fr::zero();
      sum = u >> 31 ? sum - x : sum + x;
      sum = v >> 31 ? sum - y : sum + y;
    }
  }
  PINZK_INLINE Fr product(u32 k) const {
    const u32 code = width == 1   ? static_cast<const unsigned char*>(codes)[k]
                     : width == 2 ? static_cast<const unsigned short*>(codes)[k]
                                  : static_cast<const u32*>(codes)[k];
    return load(dictionary + 4 * u64(code)) * load(witness + 4 * u64(columns[k]));
  }
};

// an element for each lane of a warp, in shared memory: words apart, so that neighbours use different banks
struct Terms {
  u32 word[8][32];

  PINZK_INLINE void put(int lane, const Fr& x) {
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) {
      word[2 * i][lane] = static_cast<u32>(x.limbs.word[i]);
      word[2 * i + 1][lane] = static_cast<u32>(x.limbs.word[i] >> 32);
    }
  }
  PINZK_INLINE Fr get(int lane) const {
    Fr x;
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) x.limbs.word[i] = word[2 * i][lane] | u64(word[2 * i + 1][lane]) << 32;
    return x;
  }
};

PINZK_INLINE u32 larger(u32 a, u32 b) { return a > b ? a : b; }
PINZK_INLINE u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

}  // namespace pinzk

using namespace pinzk;

// out[i] = row i, i < n; offsets: n + 1 of units, n + 1 of products. Blocks of 32 `warps` threads
extern "C" __global__ __launch_bounds__(32 * warps) void sparse_rows(u64* out, const u32* unit_offsets, const u32* units,
                                                                     const u32* offsets, const u32* columns,
                                                                     const void* codes, const u32 width,
                                                                     const u64* dictionary, const u64* witness,
                                                                     const u64 n) {
  __shared__ Terms shared[warps];
  const Entries entries{units, columns, codes, width, dictionary, witness};
  const u64 i = first();
  const u32 lane = threadIdx.x & 31;
  if (i - lane >= n) return;  // all lanes of a warp
  Fr sum = Fr::zero();
  u32 begin = offsets[i < n ? i : n], end = begin;
  if (i < n) {
    end = offsets[i + 1];
    entries.add_units(sum, unit_offsets[i], unit_offsets[i + 1], 1);
  }
  Terms& terms = shared[threadIdx.x >> 5];
  const u32 all = __shfl_sync(0xffffffffu, end, 31);
  for (u32 base = __shfl_sync(0xffffffffu, begin, 0); base < all; base += 32) {
    if (base + lane < all) terms.put(lane, entries.product(base + lane));
    __syncwarp();
    for (u32 k = larger(begin, base), last = smaller(end, base + 32); k < last; k++) sum = sum + terms.get(k - base);
    __syncwarp();
  }
  if (i < n) store(out + 4 * i, sum);
}

// the same for n rows that are named, a warp each; offsets: n + 1 of units, n + 1 of products
extern "C" __global__ __launch_bounds__(32 * warps) void sparse_long_rows(u64* out, const u32* unit_offsets,
                                                                          const u32* units, const u32* offsets,
                                                                          const u32* columns, const void* codes,
                                                                          const u32 width, const u64* dictionary,
                                                                          const u64* witness, const u32* rows, const u64 n) {
  __shared__ Terms shared[warps];
  const Entries entries{units, columns, codes, width, dictionary, witness};
  const u64 j = first() >> 5;
  const u32 lane = threadIdx.x & 31;
  if (j >= n) return;
  Fr sum = Fr::zero();
  entries.add_units(sum, unit_offsets[j] + lane, unit_offsets[j + 1], 32);
  for (u32 k = offsets[j] + lane; k < offsets[j + 1]; k += 32) sum = sum + entries.product(k);
  Terms& terms = shared[threadIdx.x >> 5];
  for (u32 half = 16; half; half >>= 1) {
    terms.put(lane, sum);
    __syncwarp();
    if (lane < half) sum = sum + terms.get(lane + half);
    __syncwarp();
  }
  if (lane == 0) store(out + 4 * u64(rows[j]), sum);
}

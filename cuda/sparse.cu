// SPDX-License-Identifier: Apache-2.0
// Sparse constraint rows on a witness: A w, B w, C w.
//
// Entries of a row lie behind each other: columns (u32) and codes of coefficients, of one, two or four bytes: 0 is 1, 1 is
// -1, others look into a dictionary. Witness and dictionary are in Montgomery form, so that 1 and -1, most of all
// coefficients, cost an addition. A thread takes a row of up to `longest` entries, a warp a longer one. Bound by the gather
// of the witness.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "elements.cuh"

namespace pinzk {

struct Entries {
  const u32* columns;
  const void* codes;
  u32 width;
  const u64 *dictionary, *witness;

  // sum += the terms begin, begin + step, .. below end
  PINZK_INLINE void add(Fr& sum, u64 begin, u64 end, u32 step) const {
    for (u64 k = begin; k < end; k += step) {
      const u32 code = width == 1   ? static_cast<const unsigned char*>(codes)[k]
                       : width == 2 ? static_cast<const unsigned short*>(codes)[k]
                                    : static_cast<const u32*>(codes)[k];
      Fr x = load(witness + 4 * u64(columns[k]));
      if (code > 1) x = x * load(dictionary + 4 * u64(code));
      sum = code == 1 ? sum - x : sum + x;
    }
  }
};

PINZK_INLINE Fr from_lane_below(const Fr& x, int distance) {
  Fr y;
  PINZK_UNROLL
  for (int i = 0; i < 4; i++) {
    const u32 lo = __shfl_down_sync(0xffffffffu, static_cast<u32>(x.limbs.word[i]), distance),
              hi = __shfl_down_sync(0xffffffffu, static_cast<u32>(x.limbs.word[i] >> 32), distance);
    y.limbs.word[i] = lo | u64(hi) << 32;
  }
  return y;
}

}  // namespace pinzk

using namespace pinzk;

// out[i] = row i for rows of at most `longest` entries; others are left alone
extern "C" __global__ void sparse_rows(u64* out, const u32* offsets, const u32* columns, const void* codes, const u32 width,
                                       const u64* dictionary, const u64* witness, const u32 longest, const u64 n) {
  const Entries entries{columns, codes, width, dictionary, witness};
  for (u64 i = first(); i < n; i += stride()) {
    const u32 begin = offsets[i], end = offsets[i + 1];
    if (end - begin > longest) continue;
    Fr sum = Fr::zero();
    entries.add(sum, begin, end, 1);
    store(out + 4 * i, sum);
  }
}

// the same for the n rows that are named, a warp each
extern "C" __global__ void sparse_long_rows(u64* out, const u32* offsets, const u32* columns, const void* codes,
                                            const u32 width, const u64* dictionary, const u64* witness, const u32* rows,
                                            const u64 n) {
  const Entries entries{columns, codes, width, dictionary, witness};
  const u32 lane = threadIdx.x & 31;
  for (u64 j = first() >> 5; j < n; j += stride() >> 5) {
    const u32 i = rows[j];
    Fr sum = Fr::zero();
    entries.add(sum, u64(offsets[i]) + lane, offsets[i + 1], 32);
    for (int distance = 16; distance; distance >>= 1) sum = sum + from_lane_below(sum, distance);
    if (lane == 0) store(out + 4 * u64(i), sum);
  }
}

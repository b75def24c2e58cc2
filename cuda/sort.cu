// SPDX-License-Identifier: Apache-2.0
// From scalars to the order of a multi-scalar sum: signed digits, sorted by bucket. Works on scalars alone.
//
// A scalar above r/2 counts as minus its complement. Plus an offset with the top bit of every window but the last set, its
// windows of `width` bits less those top bits are signed digits in [-2^(width-1), 2^(width-1)]: no carry runs. Window
// w = j sets + s belongs to set s and to multiple j of the base (2^(width sets j) P). A digit d that is not zero is an entry
//   key << 32 | (d < 0) << 31 | j stride + i      key = s 2^(width-1) + |d| - 1, i the scalar
// and zeros leave no trace. Entries are sorted by key in passes over up to eight bits, lowest first: count (a row of counts
// for each value, a column for each block), scan of the rows, scatter through shared memory, stable. The first pass reads
// scalars and makes their digits on the way, twice, so that no unsorted entry is ever written. The number of entries stays
// on the device: grids are as large as it may be. docs/kernels.md, 7.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "chains.cuh"

namespace pinzk {

using Fr = Curve::Fr;

constexpr int threads = 256, warps = threads / 32, rounds = 16, tile = threads * rounds, bins = 256;
constexpr u32 whole = 0xffffffffu;

// what the digits of a scalar are
struct Digits {
  u64 n;           // scalars
  u64 first;       // number of scalars before these
  u64 stride;      // bases of one multiple
  int montgomery;  // or canonical
  int width, windows, sets;
};

// one thread's scalar, a window at a time, lowest first
struct Scalar {
  u32 w[9];
  bool negative;

  // `reduced`: it is below r; as zero it counts otherwise
  PINZK_INLINE Scalar(const u64* scalars, const Digits& d, u64 i, bool& reduced) {
    Fr k = Fr::zero();
    if (i < d.n) {
      PINZK_UNROLL
      for (int j = 0; j < 4; j++) k.limbs.word[j] = scalars[4 * i + j];
    }
    reduced = less(k.limbs, Fr::modulus);
    if (!reduced) k = Fr::zero();
    if (d.montgomery) k.limbs = k.to_canonical();
    const Limbs<4> other = minus(Fr::modulus, k.limbs);
    negative = less(other, k.limbs);
    const auto v = Words<4>::from(negative ? other : k.limbs);
    PINZK_UNROLL
    for (int j = 0; j < 8; j++) w[j] = v.w[j];
    w[8] = 0;
    // the offset
    u32 carry = 0;
    int next = d.windows > 1 ? d.width - 1 : 1 << 30, left = d.windows - 1;
    PINZK_UNROLL
    for (int j = 0; j < 8; j++) {
      u32 h = 0;
      while (next < 32 * (j + 1)) {
        h |= 1u << (next - 32 * j);
        next = --left ? next + d.width : 1 << 30;
      }
      const u64 s = u64(w[j]) + h + carry;
      w[j] = static_cast<u32>(s);
      carry = static_cast<u32>(s >> 32);
    }
    w[8] = carry;
  }
  // the lowest `width` bits, which leave; width < 32
  PINZK_INLINE u32 take(int width) {
    const u32 low = w[0] & ((1u << width) - 1);
    PINZK_UNROLL
    for (int j = 0; j < 8; j++) w[j] = static_cast<u32>((u64(w[j + 1]) << 32 | w[j]) >> width);
    w[8] >>= width;
    return low;
  }
};

// key and payload of a window's digit; false for zero
PINZK_INLINE bool entry(const Digits& d, Scalar& k, int window, u64 i, u64& out) {
  const u32 bits = k.take(d.width);
  const int digit = static_cast<int>(bits) - (window + 1 < d.windows ? 1 << (d.width - 1) : 0);
  if (i >= d.n || digit == 0) return false;
  const u32 magnitude = static_cast<u32>(digit < 0 ? -digit : digit), set = static_cast<u32>(window % d.sets);
  const u64 index = u64(window / d.sets) * d.stride + d.first + i;
  out = u64(set << (d.width - 1) | (magnitude - 1)) << 32 | u64((digit < 0) != k.negative) << 31 | index;
  return true;
}

struct Bits {
  int shift;  // of the key
  u32 mask;   // below 256
  PINZK_INLINE u32 of(u64 e) const { return static_cast<u32>(e >> (32 + shift)) & mask; }
};

// lanes of the warp whose entry is there and has the same value
PINZK_INLINE u32 peers(u32 value, bool there) {
  u32 same = __ballot_sync(whole, there);
  PINZK_UNROLL
  for (int b = 0; b < 8; b++) {
    const bool set = value >> b & 1;
    const u32 with = __ballot_sync(whole, set);
    same &= set ? with : ~with;
  }
  return same;
}

struct Sorter {
  u32 count[warps][bins];  // of each warp; then where its entries begin in the block's stage
  u64 stage[tile];
  u32 begin[bins];  // of a value's entries in the output, less where they begin in the stage
  u32 sums[warps];
  u32 total;
};

// sum over lower threads of the block; `total` of all
PINZK_INLINE u32 scan(u32 x, u32* sums, u32& total) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u32 sum = x;
  PINZK_UNROLL
  for (int d = 1; d < 32; d *= 2) {
    const u32 below = __shfl_up_sync(whole, sum, d);
    if (lane >= static_cast<u32>(d)) sum += below;
  }
  __syncthreads();
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  u32 before = 0;
  total = 0;
  for (u32 w = 0; w < blockDim.x / 32; w++) {
    before += w < warp ? sums[w] : 0;
    total += sums[w];
  }
  return before + sum - x;
}

// Entries of a block to their places. Round r of a warp's lanes is before round r + 1, warps are in order. `bases`:
// exclusive sums of the counts of this block's column in its rows; `totals`: of the rows
PINZK_INLINE void scatter(Sorter& s, const u64 (&e)[rounds], u32 there, const Bits& bits, const u32* bases,
                          const u32* totals, u64 columns, u64 column, u64* out, u32* count) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int w = 0; w < warps; w++) s.count[w][threadIdx.x] = 0;
  __syncthreads();
  u32 rank[rounds / 2];
  PINZK_UNROLL
  for (int r = 0; r < rounds; r++) {
    const bool here = there >> r & 1;
    const u32 value = bits.of(e[r]), same = peers(value, here), below = __popc(same & ((1u << lane) - 1));
    const u32 before = s.count[warp][value];
    __syncwarp();
    if (here && below == 0) s.count[warp][value] = before + __popc(same);
    __syncwarp();
    rank[r / 2] = r % 2 ? rank[r / 2] | (before + below) << 16 : before + below;
  }
  __syncthreads();
  const u32 value = threadIdx.x;  // a thread for each value
  u32 mine = 0;
  PINZK_UNROLL
  for (int w = 0; w < warps; w++) mine += s.count[w][value];
  u32 size, entries;
  const u32 start = scan(mine, s.sums, size), row = value <= bits.mask ? totals[value] : 0,
            global = scan(row, s.sums, entries);
  u32 at = start;
  PINZK_UNROLL
  for (int w = 0; w < warps; w++) {
    const u32 k = s.count[w][value];
    s.count[w][value] = at;
    at += k;
  }
  if (value <= bits.mask) s.begin[value] = global + bases[value * columns + column] - start;
  if (count && column == 0 && threadIdx.x == 0) *count = entries;
  __syncthreads();
  PINZK_UNROLL
  for (int r = 0; r < rounds; r++)
    if (there >> r & 1) s.stage[s.count[warp][bits.of(e[r])] + (rank[r / 2] >> (r % 2 * 16) & 0xffff)] = e[r];
  __syncthreads();
  for (u32 i = threadIdx.x; i < size; i += threads) out[s.begin[bits.of(s.stage[i])] + i] = s.stage[i];
}

// entries of this block's scalars, a window each round
PINZK_INLINE u32 digits_of(const u64* scalars, const Digits& d, u64 (&e)[rounds], bool& reduced) {
  const u64 i = u64(blockIdx.x) * threads + threadIdx.x;
  Scalar k(scalars, d, i, reduced);
  const int from = blockIdx.y * rounds;
  for (int w = 0; w < from; w++) k.take(d.width);
  u32 there = 0;
  PINZK_UNROLL
  for (int r = 0; r < rounds; r++) {
    e[r] = 0;
    if (from + r < d.windows && entry(d, k, from + r, i, e[r])) there |= 1u << r;
  }
  return there;
}
// of a tile of entries
PINZK_INLINE u32 entries_of(const u64* in, const u32* count, u64 (&e)[rounds]) {
  const u64 n = *count, first = u64(blockIdx.x) * tile + threadIdx.x / 32 * (32 * rounds) + threadIdx.x % 32;
  u32 there = 0;
  PINZK_UNROLL
  for (int r = 0; r < rounds; r++) {
    const u64 i = first + 32 * r;
    e[r] = i < n ? in[i] : 0;
    there |= u32(i < n) << r;
  }
  return there;
}

PINZK_INLINE void count_entries(u32* histogram, const u64 (&e)[rounds], u32 there, const Bits& bits, u32* rows, u64 columns,
                                u64 column) {
  histogram[threadIdx.x] = 0;
  __syncthreads();
  PINZK_UNROLL
  for (int r = 0; r < rounds; r++) {
    const bool here = there >> r & 1;
    const u32 same = peers(bits.of(e[r]), here);
    if (here && (same & ((1u << threadIdx.x % 32) - 1)) == 0) atomicAdd(&histogram[bits.of(e[r])], __popc(same));
  }
  __syncthreads();
  if (threadIdx.x <= bits.mask) rows[threadIdx.x * columns + column] = histogram[threadIdx.x];
}

}  // namespace pinzk

using namespace pinzk;

// state: of each chunk the number of entries, and 2^32 - 1 - i of the first scalar i that is not reduced, 0 for none
extern "C" __global__ void sort_begin(u32* state, const u32 chunks) {
  for (u32 i = threadIdx.x; i < 2 * chunks; i += blockDim.x) state[i] = 0;
}

// rows[v][block] = entries of value v; blocks of 256 scalars, 16 windows each: grid (ceil(n / 256), ceil(windows / 16))
extern "C" __global__ __launch_bounds__(threads) void sort_count_digits(const u64* scalars, const Digits d, const Bits bits,
                                                                        u32* rows, u32* state) {
  __shared__ u32 histogram[bins];
  u64 e[rounds];
  bool reduced;
  const u32 there = digits_of(scalars, d, e, reduced);
  if (!reduced) atomicMax(state + 1, static_cast<u32>(whole - d.first - u64(blockIdx.x) * threads - threadIdx.x));
  count_entries(histogram, e, there, bits, rows, u64(gridDim.x) * gridDim.y, blockIdx.y * u64(gridDim.x) + blockIdx.x);
}

// the same for *count entries; blocks of 4096
extern "C" __global__ __launch_bounds__(threads) void sort_count(const u64* in, const u32* count, const Bits bits,
                                                                 u32* rows) {
  __shared__ u32 histogram[bins];
  u64 e[rounds];
  const u32 there = entries_of(in, count, e);
  count_entries(histogram, e, there, bits, rows, gridDim.x, blockIdx.x);
}

// every row becomes its exclusive sums, totals the rows' sums; a block for each row, of whole warps
extern "C" __global__ __launch_bounds__(1024) void sort_scan(u32* rows, const u64 columns, u32* totals) {
  __shared__ u32 sums[32];
  u32* row = rows + blockIdx.x * columns;
  u32 before = 0;
  for (u64 first = 0; first < columns; first += blockDim.x) {
    const u64 i = first + threadIdx.x;
    u32 total;
    const u32 x = i < columns ? row[i] : 0, sum = scan(x, sums, total);
    if (i < columns) row[i] = before + sum;
    before += total;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = before;
}

// the entries, in the order of these bits, and their number
extern "C" __global__ __launch_bounds__(threads) void sort_scatter_digits(const u64* scalars, const Digits d,
                                                                          const Bits bits, const u32* rows,
                                                                          const u32* totals, u64* out, u32* state) {
  __shared__ Sorter sorter;
  u64 e[rounds];
  bool reduced;
  const u32 there = digits_of(scalars, d, e, reduced);
  scatter(sorter, e, there, bits, rows, totals, u64(gridDim.x) * gridDim.y, blockIdx.y * u64(gridDim.x) + blockIdx.x, out,
          state);
}

extern "C" __global__ __launch_bounds__(threads) void sort_scatter(const u64* in, const u32* count, const Bits bits,
                                                                   const u32* rows, const u32* totals, u64* out) {
  __shared__ Sorter sorter;
  u64 e[rounds];
  const u32 there = entries_of(in, count, e);
  scatter(sorter, e, there, bits, rows, totals, gridDim.x, blockIdx.x, out, nullptr);
}

// SPDX-License-Identifier: Apache-2.0
// Multi-scalar sums from sorted entries: accumulate runs of equal keys into buckets, join runs that walkers share, fold.
//
// Entries come from sort.cu, ordered by key, a key for each bucket. A walker, a thread, takes an equal share of consecutive
// entries, whatever their keys, so the work is even for every distribution of scalars. A run that lies in one share goes to
// its bucket. Of one that does not, each walker has a part: its first, where the run began earlier and ends here (head), or
// its last, where the run goes on (tail). `links` say how parts hang together, and msm_join sums them by doubling distances,
// a block at a time, until one block is left.
//
// Bucket j holds the sum of the points with digit j + 1. Folding the upper half of B sums onto the lower leaves in the upper
// half those whose index has the top bit; after all steps V[0] is the sum of all, and V[2^m] of those with bit m, so the
// result is V[0] + sum 2^m V[2^m]. Every step sums all such halves at once: about 2 B additions in log B steps.
// Sums in memory are below 2p; infinity is all zeros. docs/kernels.md, 7.
//
// Needs `Curve` and `Element`; a unit for each group (msm_g1.cu, msm_g2.cu).
#pragma once
#include "lazy_curve.cuh"

namespace pinzk {

using Sum = LazyXyzz<Element>;
using Point = LazyAffine<Element>;

constexpr int threads = 128, resident = Element::words <= 4 ? 4 : Element::words <= 6 ? 3 : 2;  // blocks, by registers
constexpr int nodes_of_join = 256;

enum Link : u32 {
  none = 0,     // no run goes on behind this walker
  starts = 1,   // one does, and began here
  through = 2,  // one does, and began earlier
};

PINZK_INLINE u64 thread() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
PINZK_INLINE u32 key_of(u64 entry) { return static_cast<u32>(entry >> 32); }

// a + b, both in memory, when infinity is common. For G2 a call: inlined in every kernel, it takes a minute to compile
PINZK_INLINE Sum sum_of(const u64* a, const u64* b) {
  Sum x = Sum::load(a);
  const Sum y = Sum::load(b);
  if (y.is_infinity()) return x;
  if (x.is_infinity()) return y;
  x.add(y);
  return x;
}
PINZK_COLD Sum called_sum_of(const u64* a, const u64* b) { return sum_of(a, b); }

PINZK_INLINE const u64* row_of(const u64* table, u64 entry) { return table + (entry & 0x7fffffff) * Point::words; }

// warps go about in step, so all of them would wait for their points at once
PINZK_INLINE void prefetch_row(const u64* table, u64 entry) {
  PINZK_UNROLL
  for (int i = 0; i < Point::words; i += 4) prefetch(row_of(table, entry) + i);
}

// whether the sum in memory is infinity
PINZK_INLINE bool vacant(const u64* sum) {
  u64 any = 0;
  PINZK_UNROLL
  for (int i = 2 * Element::words; i < 3 * Element::words; i++) any |= sum[i];
  return any == 0;
}

}  // namespace pinzk

using namespace pinzk;

// Sums of runs. `seeded`: buckets hold sums of earlier entries, to be added to; otherwise those without a run here are left
// as they are. Grid: as many walkers as there are, fully occupied; `least` entries for each at least.
extern "C" __global__ __launch_bounds__(threads, resident) void msm_accumulate(const u64* entries, const u32* count,
                                                                               const u64* table, u64* buckets,
                                                                               const u32 seeded, const u32 least, u64* heads,
                                                                               u64* tails, u32* links, u32* keys) {
  const u32 n = *count, t = static_cast<u32>(thread()), walkers = gridDim.x * threads;
  const u32 even = n / walkers + (n % walkers != 0), share = even < least ? least : even;
  if (u64(t) * share >= n) {
    links[t] = none;
    return;
  }
  const u32 begin = t * share, end = n - begin > share ? begin + share : n;
  u32 key = key_of(entries[begin]);
  bool earlier = begin > 0 && key_of(entries[begin - 1]) == key, empty = true;
  Sum sum = Sum::infinity();
  const auto seed = [&] {
    empty = !seeded || vacant(buckets + u64(key) * Sum::words);
    if (!empty) sum = Sum::load(buckets + u64(key) * Sum::words);
  };
  const auto flush = [&](u64* to) {
    if (empty) sum = Sum::infinity();
    sum.store(to);
  };
  if (!earlier) seed();
  u64 next = entries[begin], after = begin + 1 < end ? entries[begin + 1] : next;
  for (u32 i = begin; i < end; i++) {
    const u64 e = next;
    next = after;
    prefetch_row(table, next);
    if (i + 2 < end) after = entries[i + 2];
    if (key_of(e) != key) {
      flush(earlier ? heads + u64(t) * Sum::words : buckets + u64(key) * Sum::words);
      key = key_of(e);
      earlier = false;
      seed();
    }
    const Point p = Point::load(row_of(table, e)).negated_if(e >> 31 & 1);
    if (!empty) {
      sum.add(p);
    } else if (!p.is_infinity()) {
      sum = {p.x, p.y, Element::one(), Element::one()};
      empty = false;
    }
  }
  const bool goes_on = end < n && key_of(entries[end]) == key;
  flush(goes_on ? tails + u64(t) * Sum::words : earlier ? heads + u64(t) * Sum::words : buckets + u64(key) * Sum::words);
  if (goes_on) keys[t] = key;
  links[t] = !goes_on ? none : earlier ? through : starts;
}

// Parts of runs: a node for each of `nodes` walkers, whose tails change, joined into one for each block. Runs that end
// within a block go to their buckets.
extern "C" __global__ __launch_bounds__(nodes_of_join) void msm_join(const u64* heads, u64* tails, const u32* links,
                                                                     const u32* keys, const u32 nodes, u64* buckets,
                                                                     u64* out_heads, u64* out_tails, u32* out_links,
                                                                     u32* out_keys) {
  __shared__ u32 open[nodes_of_join];  // the run goes on behind what is summed so far
  __shared__ u32 going;
  const u32 t = static_cast<u32>(thread()), place = threadIdx.x;
  const u32 link = t < nodes ? links[t] : none, next = t + 1 < nodes ? links[t + 1] : none;
  const bool there = link != none, ends = there && next != through;
  u64* const tail = tails + u64(t) * Sum::words;
  if (ends) called_sum_of(tail, heads + u64(t + 1) * Sum::words).store(tail);
  bool mine = there && !ends;
  open[place] = mine;
  for (u32 d = 1; d < nodes_of_join; d *= 2) {
    __syncthreads();
    if (place == 0) going = 0;
    __syncthreads();
    const bool more = mine && place + d < nodes_of_join;
    if (more) atomicOr(&going, 1u);
    __syncthreads();
    if (!going) break;
    Sum sum;
    if (more) {
      mine = open[place + d];
      sum = called_sum_of(tail, tail + u64(d) * Sum::words);
    }
    __syncthreads();
    if (more) sum.store(tail);
    open[place] = mine;
  }
  // of a run that leaves the block, one node knows all that the block has of it; so of one that enters and ends
  if (place == nodes_of_join - 1 && !mine) out_links[blockIdx.x] = none;
  const bool enters = place == 0 && link == through;
  if (mine && (link == starts || enters)) {
    Sum::load(tail).store(out_tails + u64(blockIdx.x) * Sum::words);
    out_links[blockIdx.x] = link;
    out_keys[blockIdx.x] = keys[t];
  } else if (enters) {
    Sum::load(tail).store(out_heads + u64(blockIdx.x) * Sum::words);
  } else if (link == starts) {
    Sum::load(tail).store(buckets + u64(keys[t]) * Sum::words);
  }
}

extern "C" __global__ void msm_clear(u64* words, const u64 n) {
  for (u64 i = thread(); i < n; i += u64(gridDim.x) * blockDim.x) words[i] = 0;
}

namespace pinzk {

// Pair i of a step to arrays of 2^log_length sums: the fold of V[0..] and of the upper halves that steps before have left.
// `level`: the step, from 1; a set has 2^(log_length + level) sums.
template <bool inlined>
PINZK_INLINE void fold(u64* sums, u64 i, int log_length, int level) {
  const u64 length = u64(1) << log_length, row = i >> log_length, set = row / level, k = row % level;
  const u64 first = (set << (log_length + level)) + (k ? u64(1) << (log_length + level - k) : 0) + (i & (length - 1));
  u64* const at = sums + first * Sum::words;
  const u64* const other = at + length * Sum::words;
  (inlined ? sum_of(at, other) : called_sum_of(at, other)).store(at);
}

}  // namespace pinzk

// one step of all sets
extern "C" __global__ __launch_bounds__(threads, resident) void msm_fold(u64* sums, const int log_length, const int level,
                                                                         const u64 pairs) {
  if (thread() < pairs) fold<(Element::words <= 6)>(sums, thread(), log_length, level);
}

// The steps from `level` on, a block for each set of 2^log_sums; out: V[0], V[1], V[2], V[4], .. of each set, below p
extern "C" __global__ __launch_bounds__(nodes_of_join) void msm_fold_rest(u64* sums, const int log_sums, const int level,
                                                                          u64* out) {
  u64* const mine = sums + (u64(blockIdx.x) << log_sums) * Sum::words;
  for (int s = level; s <= log_sums; s++) {
    for (u32 i = threadIdx.x; i < static_cast<u32>(s) << (log_sums - s); i += blockDim.x)
      fold<false>(mine, i, log_sums - s, s);
    __syncthreads();
  }
  for (u32 k = threadIdx.x; k <= static_cast<u32>(log_sums); k += blockDim.x) {
    const Sum v = Sum::load(mine + (k ? u64(1) << (k - 1) : 0) * Sum::words).canonical();
    v.store(out + (u64(blockIdx.x) * (log_sums + 1) + k) * Sum::words);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Number-theoretic transforms over Fr: passes of up to ten levels through shared memory, radix 8 in registers.
//
// A transform of 2^k runs as passes over the whole data. A pass of L levels sees blocks of m = 2^L q elements as a matrix of
// 2^L rows P and q columns i, and transforms columns: tiles of 1024 elements (2^L rows, T columns), 128 threads with 8
// elements each, one radix-8 step for three levels, exchanged between steps in shared memory. DIF passes go from large m to
// small (natural order in, bit-reversed out); DIT passes back. Between passes an element (P, i) is multiplied by
// w_m^(i rev_L(P)), read from a table in the order of the threads; a shift to a coset stands in the tables. Residues are
// lazy, below 2p; the last pass makes them canonical. Twiddles are fixed operands (lazy.cuh). Counts, layout and versions
// tried: docs/kernels.md, 3.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "lazy.cuh"

namespace pinzk {

using Fr = Curve::Fr;
using Z = Lazy<Fr>;
using Twiddle = Fixed<Fr>;

constexpr int points = 8, threads = 128, blocks = 4;  // elements of a thread; a block's threads; a multiprocessor's blocks

struct alignas(16) Quad {
  u32 w[4];
};

PINZK_INLINE Z load(const u32* p) {
  Z z;
  const Quad lo = reinterpret_cast<const Quad*>(p)[0], hi = reinterpret_cast<const Quad*>(p)[1];
  PINZK_UNROLL
  for (int i = 0; i < 4; i++) z.v.w[i] = lo.w[i], z.v.w[4 + i] = hi.w[i];
  return z;
}
PINZK_INLINE void store(u32* p, const Z& z) {
  Quad lo, hi;
  PINZK_UNROLL
  for (int i = 0; i < 4; i++) lo.w[i] = z.v.w[i], hi.w[i] = z.v.w[4 + i];
  reinterpret_cast<Quad*>(p)[0] = lo;
  reinterpret_cast<Quad*>(p)[1] = hi;
}

// the tile in shared memory: halves of an element lie apart; swizzled so that eight lanes never share a bank, neither with
// one half of eight elements nor with both of four
struct Tile {
  Quad* quads;
  u32 log;  // of its elements

  PINZK_INLINE explicit Tile(u32 tile_log) : log(tile_log) {
    extern __shared__ Quad shared[];
    quads = shared;
  }
  PINZK_INLINE Quad& quad(u32 e, u32 h) const { return quads[(h << log) + (e ^ (e >> 3 & 7) ^ (h << 2))]; }
  PINZK_INLINE Z get(u32 e) const {
    Z z;
    const Quad lo = quad(e, 0), hi = quad(e, 1);
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) z.v.w[i] = lo.w[i], z.v.w[4 + i] = hi.w[i];
    return z;
  }
  PINZK_INLINE void put(u32 e, const Z& z) const {
    Quad lo, hi;
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) lo.w[i] = z.v.w[i], hi.w[i] = z.v.w[4 + i];
    quad(e, 0) = lo;
    quad(e, 1) = hi;
  }
};

// roots of a radix-8 step: i = w_8^2, c = (w_8 + 1/w_8) / 2, s = (w_8 - 1/w_8) / 2; four products instead of five
struct Step8 {
  Twiddle i, c, s;
};

PINZK_INLINE void butterfly(Z& a, Z& b) {
  const Z t = a - b;
  a = a + b;
  b = t;
}

// X_k = sum x_j w_8^(jk), natural order in, bit-reversed out (X0 X4 X2 X6 X1 X5 X3 X7): butterflies of x_j and x_(j+4), then
// these on the sums and on the differences. Of a narrower step only the first `levels` levels: 8 / 2^levels transforms,
// interleaved.
PINZK_INLINE void dif_sums(Z* x, const Step8& roots, int levels) {
  if (levels == 1) return;
  butterfly(x[0], x[2]);
  butterfly(x[1], x[3]);
  if (levels == 2) return;
  butterfly(x[0], x[1]);
  x[3] = x[3].times(roots.i);
  butterfly(x[2], x[3]);
}
PINZK_INLINE void dif_differences(Z* x, const Step8& roots, int levels) {
  if (levels == 1) return;
  x[2] = x[2].times(roots.i);
  if (levels == 2) {
    x[3] = x[3].times(roots.i);
    butterfly(x[0], x[2]);
    butterfly(x[1], x[3]);
    return;
  }
  const Z a = loose_sub(x[1], x[3]).times(roots.c), b = loose_add(x[1], x[3]).times(roots.s);
  butterfly(x[0], x[2]);
  x[1] = a + b;
  x[3] = b - a;
  butterfly(x[0], x[1]);
  butterfly(x[2], x[3]);
}

// the transposed network: the same sums, bit-reversed in, natural out; the last levels
PINZK_INLINE void dit_sums(Z* x, const Step8& roots, int levels) {
  if (levels == 1) return;
  if (levels == 3) {
    butterfly(x[0], x[1]);
    butterfly(x[2], x[3]);
    x[3] = x[3].times(roots.i);
  }
  butterfly(x[0], x[2]);
  butterfly(x[1], x[3]);
}
PINZK_INLINE void dit_differences(Z* x, const Step8& roots, int levels) {
  if (levels == 1) return;
  if (levels == 2) {
    butterfly(x[0], x[2]);
    butterfly(x[1], x[3]);
    x[3] = x[3].times(roots.i);
  } else {
    butterfly(x[0], x[1]);
    butterfly(x[2], x[3]);
    butterfly(x[0], x[2]);
    const Z a = loose_sub(x[1], x[3]).times(roots.c), b = loose_add(x[1], x[3]).times(roots.s);
    x[1] = a + b;
    x[3] = b - a;
  }
  x[2] = x[2].times(roots.i);
}

// of `bits` bits, also of none
PINZK_INLINE u32 reverse(u32 x, int bits) { return __brev(x) >> 1 >> (31 - bits); }

// One step of a pass on a tile's columns, and what it multiplies by.
struct Step {
  const u32* twiddles;  // fixed operands in rows of eight, see `table_place`
  int size;             // s: works on sub-transforms of 2^s rows
  int levels;           // 1, 2 or 3
  int first;            // slots below are not multiplied; 8: none is
  int unused;
};

// one pass: what is where
struct Pass {
  int levels;    // L, 3..10
  int tile_log;  // log2 of a tile's elements, L..10
  int log_q;     // columns of a block, 0 in the innermost pass
  int steps;
  u64 end;  // elements of all vectors
  Step step[4];
  Step8 roots;
};

// Fixed operand k of a table, in words: eight neighbours lie in rows of 16 bytes each, so that eight lanes read 128 bytes
PINZK_INLINE u64 table_place(u64 k) { return (k >> 3) * 128 + (k & 7) * 4; }
PINZK_INLINE Twiddle load_twiddle(const u32* p) {
  Twiddle t;
  PINZK_UNROLL
  for (int q = 0; q < 4; q++) {
    const Quad quad = *reinterpret_cast<const Quad*>(p + 32 * q);
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) (q < 2 ? t.w.w : t.quotient.w)[q % 2 * 4 + i] = quad.w[i];
  }
  return t;
}
PINZK_INLINE void store_twiddle(u32* p, const Twiddle& t) {
  PINZK_UNROLL
  for (int i = 0; i < 8; i++) p[i / 4 * 32 + i % 4] = t.w.w[i], p[64 + i / 4 * 32 + i % 4] = t.quotient.w[i];
}

// A tile and this thread in it: eight rows of a column. In a step on sub-transforms of 2^s rows they are 2^(s-3) apart.
struct Place {
  const Pass& pass;
  Tile tile;
  u32 c, rho;  // column, and which group of eight rows

  PINZK_INLINE explicit Place(const Pass& p) : pass(p), tile(p.tile_log) {
    const u32 thread = threadIdx.x, low = inner() ? p.levels - 3 : log_t();
    const u32 below = thread & ((1u << low) - 1), above = thread >> low;
    // columns of the innermost pass are contiguous; else neighbours in a row of the matrix are neighbours in memory
    c = inner() ? above : below;
    rho = inner() ? below : above;
  }
  PINZK_INLINE bool inner() const { return pass.log_q == 0; }
  PINZK_INLINE u32 log_t() const { return pass.tile_log - pass.levels; }
  PINZK_INLINE u32 log_threads() const { return pass.tile_log - 3; }
  // where row p of a step lies in the tile
  PINZK_INLINE u32 at(u32 p, u32 s) const {
    const u32 low = s - 3, row = (rho >> low << s) + (rho & ((1u << low) - 1)) + (p << low);
    return inner() ? (c << pass.levels) + row : (row << log_t()) + c;
  }

  // where the tile's element `thread` lies in memory, in elements; k threads further on is k << log_stride() elements
  // further
  PINZK_INLINE u64 element(u32 thread) const {
    const u32 column = blockIdx.x << log_t(), block = column >> pass.log_q;
    const u64 first = (u64(block) << (pass.log_q + pass.levels)) + (column & ((1u << pass.log_q) - 1));
    return first + (inner() ? thread : (u64(thread >> log_t()) << pass.log_q) + (thread & ((1u << log_t()) - 1)));
  }
  PINZK_INLINE u32 log_stride() const { return log_threads() + (inner() ? 0 : pass.log_q - log_t()); }
  // halves of elements: neighbouring lanes, neighbouring halves; all on their way before the first is needed
  PINZK_INLINE void load_tile(const u32* data) const {
    Quad quads[2 * points];
    const u32 t = threadIdx.x >> 1, h = threadIdx.x & 1;
    const u64 e = element(t);
    const Quad* from = reinterpret_cast<const Quad*>(data) + 2 * e + h;
    PINZK_UNROLL
    for (u32 r = 0; r < 2 * points; r++) {
      const u64 further = u64(r) << (log_stride() - 1);
      quads[r] = e + further < pass.end ? from[2 * further] : Quad{};
    }
    PINZK_UNROLL
    for (u32 r = 0; r < 2 * points; r++) tile.quad((r << (log_threads() - 1)) + t, h) = quads[r];
  }
  PINZK_INLINE void store_tile(u32* data, bool canonical) const {
    const u64 e = element(threadIdx.x);
    PINZK_UNROLL
    for (u32 r = 0; r < points; r++) {
      const u64 there = e + (u64(r) << log_stride());
      const Z z = tile.get((r << log_threads()) + threadIdx.x);
      if (there < pass.end) store(data + 8 * there, canonical ? z.canonical() : z);
    }
  }
};

// what stands between a step and the smaller ones, or behind the column: a factor for every slot
struct Factors {
  const u32* table;
  u32 stride;
  int first;

  PINZK_INLINE Factors(const Place& place, const Step& step) {
    const Pass& pass = place.pass;
    u32 low = step.size - 3, at = place.rho & ((1u << low) - 1);
    table = step.twiddles;
    if (!place.inner() && low == 0) {  // the column ends
      const u32 tile = (blockIdx.x << place.log_t() & ((1u << pass.log_q) - 1)) >> place.log_t();
      low = pass.tile_log - 3, at = threadIdx.x;
      table += u64(tile) << (pass.tile_log + 4);
    }
    table += table_place(at);
    stride = 16u << (low < 3 ? 3 : low);
    first = step.first;
  }
  PINZK_INLINE void multiply_low(Z* x) const {
    PINZK_UNROLL
    for (int p = 0; p < 4; p++)
      if (p >= first) x[p] = x[p].times(load_twiddle(table + p * stride));
  }
  PINZK_INLINE void multiply_high(Z* x) const {
    if (first == points) return;
    PINZK_UNROLL
    for (int p = 0; p < 4; p++) x[p] = x[p].times(load_twiddle(table + (4 + p) * stride));
  }
};

// Transform a tile's columns, rows in natural order in, bit-reversed out. A thread's elements are read half by half and wait
// in the tile, in its own places, so that few are in registers.
PINZK_INLINE void dif_columns(const Place& place, const Pass& pass) {
  PINZK_ROLL
  for (int k = 0; k < pass.steps; k++) {
    const Step& step = pass.step[k];
    const Factors factors(place, step);
    const auto slot = [&](int p) { return place.at(p, step.size); };
    Z x[4];
    __syncthreads();
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) {
      Z y = place.tile.get(slot(j + 4));
      x[j] = place.tile.get(slot(j));
      butterfly(x[j], y);
      place.tile.put(slot(j + 4), y);
    }
    dif_sums(x, pass.roots, step.levels);
    factors.multiply_low(x);
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) place.tile.put(slot(j), x[j]);
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) x[j] = place.tile.get(slot(j + 4));
    dif_differences(x, pass.roots, step.levels);
    factors.multiply_high(x);
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) place.tile.put(slot(j + 4), x[j]);
  }
}

// the way back: bit-reversed in, natural out
PINZK_INLINE void dit_columns(const Place& place, const Pass& pass) {
  PINZK_ROLL
  for (int k = pass.steps - 1; k >= 0; k--) {
    const Step& step = pass.step[k];
    const Factors factors(place, step);
    const auto slot = [&](int p) { return place.at(p, step.size); };
    Z x[4];
    __syncthreads();
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) x[j] = place.tile.get(slot(j + 4));
    factors.multiply_high(x);
    dit_differences(x, pass.roots, step.levels);
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) place.tile.put(slot(j + 4), x[j]);
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) x[j] = place.tile.get(slot(j));
    factors.multiply_low(x);
    dit_sums(x, pass.roots, step.levels);
    PINZK_UNROLL
    for (int j = 0; j < 4; j++) {
      Z y = place.tile.get(slot(j + 4));
      butterfly(x[j], y);
      place.tile.put(slot(j), x[j]);
      place.tile.put(slot(j + 4), y);
    }
  }
}

}  // namespace pinzk

using namespace pinzk;

extern "C" __global__ __launch_bounds__(threads, blocks) void ntt_dif(u32* data, const __grid_constant__ Pass pass,
                                                                      const u32 canonical) {
  const Place place(pass);
  place.load_tile(data);
  dif_columns(place, pass);
  __syncthreads();
  place.store_tile(data, canonical);
}

extern "C" __global__ __launch_bounds__(threads, blocks) void ntt_dit(u32* data, const __grid_constant__ Pass pass,
                                                                      const u32 canonical) {
  const Place place(pass);
  place.load_tile(data);
  dit_columns(place, pass);
  __syncthreads();
  place.store_tile(data, canonical);
}

// the innermost passes of a transform and of the one that goes back, from bit-reversed order: one trip through memory
extern "C" __global__ __launch_bounds__(threads, blocks) void ntt_middle(u32* data, const __grid_constant__ Pass down,
                                                                         const __grid_constant__ Pass up,
                                                                         const u32 canonical) {
  const Place place(down);
  place.load_tile(data);
  dif_columns(place, down);
  dit_columns(place, up);
  __syncthreads();
  place.store_tile(data, canonical);
}

// The table behind an outer pass of 2^levels rows and 2^log_q columns: c w^(i f) g^f for row P and column i, f = rev(P), in
// the order of the threads that use it. constants: c; w^(2^j), j < levels + log_q; g^(2^j), j < levels; Montgomery.
extern "C" __global__ void ntt_twiddles(u32* out, const Fr* constants, const int levels, const int log_q,
                                        const int tile_log) {
  const u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >> (levels + log_q)) return;
  const int log_t = tile_log - levels, log_threads = tile_log - 3;
  const u32 thread = k & ((1u << log_threads) - 1), p = k >> log_threads & (points - 1);
  const u64 i = (k >> tile_log << log_t) + (thread & ((1u << log_t) - 1));
  const u32 f = reverse((thread >> log_t) * points + p, levels);
  Fr power = constants[0];
  const Fr* square = constants + 1;
  for (u64 e = i * f; e; e >>= 1, square++)
    if (e & 1) power = power * *square;
  square = constants + 1 + levels + log_q;
  for (u32 e = f; e; e >>= 1, square++)
    if (e & 1) power = power * *square;
  store_twiddle(out + table_place(k), fixed_operand(power));
}

// transforms of one, two and four elements, one vector a thread. constants: w, then what coefficient j is multiplied by.
// Coefficients, bit-reversed, come in or go out: `forward`.
extern "C" __global__ void ntt_small(Fr* data, const Fr* constants, const int log_n, const u32 forward, const u64 vectors) {
  const u64 v = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (v >= vectors) return;
  const int n = 1 << log_n;
  const Fr w = constants[0];
  Fr x[4];
  data += v * n;
  for (int j = 0; j < n; j++) x[j] = forward ? data[reverse(j, log_n)] * constants[1 + j] : data[j];
  Fr step = Fr::one();
  for (int k = 0; k < n; k++, step = step * w) {
    Fr sum = Fr::zero(), power = Fr::one();
    for (int j = 0; j < n; j++, power = power * step) sum = sum + x[j] * power;
    data[forward ? k : reverse(k, log_n)] = forward ? sum : sum * constants[1 + k];
  }
}

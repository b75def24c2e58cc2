// SPDX-License-Identifier: Apache-2.0
// Number-theoretic transforms over Fr: passes of up to ten levels through shared memory, radix 8 in registers.
//
// A transform of 2^k runs as passes over the whole data. A pass of L levels sees blocks of m = 2^L q elements as a matrix of
// 2^L rows P and q columns i, and transforms columns: tiles of 1024 elements (2^L rows, T columns), 128 threads with 8
// elements each, one radix-8 step for three levels, exchanged between steps in shared memory. DIF passes go from large m to
// small (natural order in, bit-reversed out); DIT passes back. Between passes an element (P, i) is multiplied by
// w_m^(i rev_L(P)), read from a table in the order of the data. Residues are lazy, below 2p; the last pass makes them
// canonical. Twiddles are fixed operands (lazy.cuh). Counts, layout and versions tried: docs/kernels.md, 3.
//
// Needs `Curve`; compiled by pinzk/kernels.py.
#include "lazy.cuh"

namespace pinzk {

using Fr = Curve::Fr;
using Z = Lazy<Fr>;
using Twiddle = Fixed<Fr>;

constexpr int tile_log = 10, tile = 1 << tile_log, points = 8, threads = tile / points;

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
PINZK_INLINE Twiddle load_twiddle(const u32* p) {
  Twiddle t;
  t.w = load(p).v;
  t.quotient = load(p + 8).v;
  return t;
}

// the tile in shared memory: halves of an element lie apart, indices are swizzled so that eight lanes never share a bank
struct Tile {
  Quad half[2][tile];

  static PINZK_INLINE int slot(int e) { return e ^ (e >> 3 & 7); }
  PINZK_INLINE Z get(int e) const {
    Z z;
    const int s = slot(e);
    const Quad lo = half[0][s], hi = half[1][s];
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) z.v.w[i] = lo.w[i], z.v.w[4 + i] = hi.w[i];
    return z;
  }
  PINZK_INLINE void put(int e, const Z& z) {
    const int s = slot(e);
    Quad lo, hi;
    PINZK_UNROLL
    for (int i = 0; i < 4; i++) lo.w[i] = z.v.w[i], hi.w[i] = z.v.w[4 + i];
    half[0][s] = lo;
    half[1][s] = hi;
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

// X_k = sum x_j w_8^(jk); natural order in, bit-reversed out: X0 X4 X2 X6 X1 X5 X3 X7
PINZK_INLINE void dif8(Z* x, const u32* roots) {
  PINZK_UNROLL
  for (int j = 0; j < 4; j++) butterfly(x[j], x[j + 4]);
  const Twiddle i = load_twiddle(roots);
  butterfly(x[0], x[2]);
  butterfly(x[1], x[3]);
  butterfly(x[0], x[1]);
  x[3] = x[3].times(i);
  butterfly(x[2], x[3]);
  x[6] = x[6].times(i);
  const Z a = loose_sub(x[5], x[7]).times(load_twiddle(roots + 16)),
          b = loose_add(x[5], x[7]).times(load_twiddle(roots + 32));
  butterfly(x[4], x[6]);  // p, q
  x[5] = a + b;
  x[7] = b - a;
  butterfly(x[4], x[5]);
  butterfly(x[6], x[7]);
}

// the transposed network: the same sums, bit-reversed in, natural out
PINZK_INLINE void dit8(Z* x, const u32* roots) {
  butterfly(x[4], x[5]);
  butterfly(x[6], x[7]);
  const Twiddle i = load_twiddle(roots);
  butterfly(x[4], x[6]);
  x[6] = x[6].times(i);
  const Z a = loose_sub(x[5], x[7]).times(load_twiddle(roots + 16)),
          b = loose_add(x[5], x[7]).times(load_twiddle(roots + 32));
  x[5] = a + b;
  x[7] = b - a;
  butterfly(x[0], x[1]);
  butterfly(x[2], x[3]);
  x[3] = x[3].times(i);
  butterfly(x[0], x[2]);
  butterfly(x[1], x[3]);
  PINZK_UNROLL
  for (int j = 0; j < 4; j++) butterfly(x[j], x[j + 4]);
}

// the first b levels of dif8 and the last b of dit8 on eight elements: 8 / 2^b transforms of 2^b, interleaved
PINZK_INLINE void dif_levels(Z* x, const u32* roots, int b) {
  if (b == 3) return dif8(x, roots);
  PINZK_UNROLL
  for (int j = 0; j < 4; j++) butterfly(x[j], x[j + 4]);
  if (b == 1) return;
  butterfly(x[0], x[2]);
  butterfly(x[1], x[3]);
  PINZK_UNROLL
  for (int j = 6; j < 8; j++) {
    x[j] = x[j].times(load_twiddle(roots));
    butterfly(x[j - 2], x[j]);
  }
}
PINZK_INLINE void dit_levels(Z* x, const u32* roots, int b) {
  if (b == 3) return dit8(x, roots);
  if (b == 2) {
    butterfly(x[0], x[2]);
    butterfly(x[1], x[3]);
    PINZK_UNROLL
    for (int j = 6; j < 8; j++) {
      butterfly(x[j - 2], x[j]);
      x[j] = x[j].times(load_twiddle(roots));
    }
  }
  PINZK_UNROLL
  for (int j = 0; j < 4; j++) butterfly(x[j], x[j + 4]);
}

PINZK_INLINE int reverse(int x, int bits) { return static_cast<int>(__brev(static_cast<u32>(x)) >> (32 - bits)); }

// one pass: what is where
struct Pass {
  int levels;           // L, 3..10
  int log_q;            // columns of a block, 0 in the innermost pass
  u64 columns;          // all columns of all blocks: n * batch / 2^L
  const u32* row;       // w_1024^j as fixed operands, j < 1024
  const u32* roots;     // Step8
  const u32* twiddles;  // w_m^(i rev_L(P)) at P q + i; null in the innermost pass

  // address of row 0 of a column, in elements; rows are q apart
  PINZK_INLINE u64 base(u64 column) const {
    return (column >> log_q << (log_q + levels)) + (column & ((u64(1) << log_q) - 1));
  }
};

// a thread's place in its tile
struct Place {
  int c, rho;  // column, and which group of eight rows
  PINZK_INLINE Place(const Pass& p, int thread) {
    const int log_t = tile_log - p.levels, log_r = p.levels - 3;
    if (p.log_q) {  // neighbours in a row of the matrix are neighbours in memory
      c = thread & ((1 << log_t) - 1);
      rho = thread >> log_t;
    } else {  // columns are contiguous
      rho = thread & ((1 << log_r) - 1);
      c = thread >> log_r;
    }
  }
};

template <bool inner>
PINZK_INLINE int tile_index(int row, int c, int levels) {
  return inner ? (c << levels) + row : (row << (tile_log - levels)) + c;
}

// One step: sub-transforms of 2^s rows, of which a thread holds eight rows, 2^(s-3) apart.
struct Step {
  int s, t, first;
  PINZK_INLINE Step(int rho, int size) {
    s = size;
    t = rho & ((1 << (s - 3)) - 1);
    first = (rho >> (s - 3) << s) + t;
  }
  PINZK_INLINE int row(int p) const { return first + (p << (s - 3)); }
};

// a tile's column, as this thread sees it
template <bool inner>
struct Column {
  const Pass& pass;
  int c, rho, wide;  // wide: levels of the widest step, 1..3, so that L = wide mod 3
  u64 index, base;   // base: address of row 0, in elements
  bool active;

  PINZK_INLINE explicit Column(const Pass& p) : pass(p) {
    const Place at(p, threadIdx.x);
    c = at.c, rho = at.rho;
    wide = (p.levels - 1) % 3 + 1;
    index = (u64(blockIdx.x) << (tile_log - p.levels)) + c;
    base = p.base(index);
    active = index < p.columns;
  }
  PINZK_INLINE int shared(int row) const { return tile_index<inner>(row, c, pass.levels); }
  PINZK_INLINE u64 element(int row) const { return u64(row) << pass.log_q; }

  PINZK_INLINE Z read(const u32* data, int row) const { return active ? load(data + 8 * (base + element(row))) : Z{}; }
  PINZK_INLINE void write(u32* data, int row, const Z& z) const {
    if (active) store(data + 8 * (base + element(row)), z);
  }

  // x[p] *= what stands between a step of b levels at size s and the smaller ones: a root of order 2^s, or, where the column
  // ends, the pass's own table. Slot p holds frequency rev_b(p / 2^(3-b)) of the row p mod 2^(3-b).
  PINZK_INLINE void twiddles(Z* x, const Step& step, int b) const {
    const bool column_ends = step.s == b;
    if (inner && column_ends) return;
    PINZK_UNROLL
    for (int p = 0; p < points; p++) {
      const int f = static_cast<int>(__brev(p >> (3 - b)) >> 1 >> (31 - b));
      const int position = step.t + ((p & ((1 << (3 - b)) - 1)) << (step.s - 3));
      const u32* factor = pass.row + 16 * ((position * f) << (tile_log - step.s));
      if (!inner && column_ends)
        factor = pass.twiddles + 16 * (element(step.row(p)) + (index & ((u64(1) << pass.log_q) - 1)));
      if (p || (!inner && column_ends)) x[p] = x[p].times(load_twiddle(factor));
    }
  }
};

// Transform a tile's columns. In: x at the rows of the widest step; out: x at rows 8 rho + p, bit-reversed.
template <bool inner>
PINZK_INLINE void dif_columns(Z* x, Tile& shared, const Column<inner>& column) {
  const Pass& pass = column.pass;
  for (int size = pass.levels, b = column.wide;; b = 3) {
    const Step step(column.rho, size);
    dif_levels(x, pass.roots, b);
    column.twiddles(x, step, b);
    size -= b;
    if (size == 0) return;
    PINZK_UNROLL
    for (int p = 0; p < points; p++) shared.put(column.shared(step.row(p)), x[p]);
    __syncthreads();
    const Step next(column.rho, size);
    PINZK_UNROLL
    for (int p = 0; p < points; p++) x[p] = shared.get(column.shared(next.row(p)));
    __syncthreads();
  }
}

// the way back. In: x at rows 8 rho + p, bit-reversed; out: x at the rows of the widest step
template <bool inner>
PINZK_INLINE void dit_columns(Z* x, Tile& shared, const Column<inner>& column) {
  const Pass& pass = column.pass;
  const int L = pass.levels;
  for (int size = L == column.wide ? L : 3, b = size;;) {
    const Step step(column.rho, size);
    column.twiddles(x, step, b);
    dit_levels(x, pass.roots, b);
    if (size == L) return;
    __syncthreads();
    PINZK_UNROLL
    for (int p = 0; p < points; p++) shared.put(column.shared(step.row(p)), x[p]);
    __syncthreads();
    b = size + 3 <= L ? 3 : L - size;
    size += b;
    const Step next(column.rho, size);
    PINZK_UNROLL
    for (int p = 0; p < points; p++) x[p] = shared.get(column.shared(next.row(p)));
  }
}

PINZK_INLINE Tile& shared_tile() {
  extern __shared__ Quad shared[];
  return *reinterpret_cast<Tile*>(shared);
}

template <bool inner>
PINZK_INLINE void dif_pass(u32* data, const Pass& pass, u32 canonical) {
  Tile& shared = shared_tile();
  const Column<inner> column(pass);
  const Step wide(column.rho, pass.levels);
  Z x[points];
  PINZK_UNROLL
  for (int p = 0; p < points; p++) x[p] = column.read(data, wide.row(p));
  dif_columns(x, shared, column);
  const int row = column.rho * points;
  if constexpr (!inner) {
    PINZK_UNROLL
    for (int p = 0; p < points; p++) column.write(data, row + p, x[p]);
  } else {  // through shared memory, so that neighbouring lanes write neighbouring elements
    PINZK_UNROLL
    for (int p = 0; p < points; p++) shared.put(column.shared(row + p), x[p]);
    __syncthreads();
    const u64 first = u64(blockIdx.x) << tile_log, end = pass.columns << pass.levels;
    PINZK_UNROLL
    for (int p = 0; p < points; p++) {
      const int e = p * threads + threadIdx.x;
      const Z z = shared.get(e);
      if (first + e < end) store(data + 8 * (first + e), canonical ? z.canonical() : z);
    }
  }
}

template <bool inner>
PINZK_INLINE void dit_pass(u32* data, const Pass& pass, u32 canonical) {
  Tile& shared = shared_tile();
  const Column<inner> column(pass);
  const Step wide(column.rho, pass.levels);
  Z x[points];
  const int row = column.rho * points;
  if constexpr (!inner) {
    PINZK_UNROLL
    for (int p = 0; p < points; p++) x[p] = column.read(data, row + p);
  } else {
    const u64 first = u64(blockIdx.x) << tile_log, end = pass.columns << pass.levels;
    PINZK_UNROLL
    for (int p = 0; p < points; p++) {
      const int e = p * threads + threadIdx.x;
      shared.put(e, first + e < end ? load(data + 8 * (first + e)) : Z{});
    }
    __syncthreads();
    PINZK_UNROLL
    for (int p = 0; p < points; p++) x[p] = shared.get(column.shared(row + p));
  }
  dit_columns(x, shared, column);
  PINZK_UNROLL
  for (int p = 0; p < points; p++) column.write(data, wide.row(p), canonical ? x[p].canonical() : x[p]);
}

}  // namespace pinzk

using namespace pinzk;

#define PINZK_PASS(name, body)                                                                                     \
  extern "C" __global__ __launch_bounds__(threads, 4) void name(u32* data, const Pass pass, const u32 canonical) { \
    body(data, pass, canonical);                                                                                   \
  }
PINZK_PASS(ntt_dif, dif_pass<false>)
PINZK_PASS(ntt_dif_inner, dif_pass<true>)
PINZK_PASS(ntt_dit, dit_pass<false>)
PINZK_PASS(ntt_dit_inner, dit_pass<true>)

// the innermost pass of an inverse transform, a product with factors[j] (Montgomery, in the bit-reversed order of the data),
// and the innermost pass of the transform that follows: one trip through memory. n elements a vector.
extern "C" __global__ __launch_bounds__(threads, 4) void ntt_middle(u32* data, const Pass down, const Pass up,
                                                                    const u32* factors, const u64 n, const u32 canonical) {
  Tile& shared = shared_tile();
  const Column<true> column(down);
  const Step wide(column.rho, down.levels);
  Z x[points];
  PINZK_UNROLL
  for (int p = 0; p < points; p++) x[p] = column.read(data, wide.row(p));
  dif_columns(x, shared, column);
  const u64 j = (column.base + column.rho * points) & (n - 1);
  PINZK_UNROLL
  for (int p = 0; p < points; p++) x[p] = x[p].times(load(factors + 8 * (j + p)).v);
  dit_columns(x, shared, Column<true>(up));
  PINZK_UNROLL
  for (int p = 0; p < points; p++) column.write(data, wide.row(p), canonical ? x[p].canonical() : x[p]);
}

// out[k] = w^e(k) as a fixed operand; w^(2^j) in squares, Montgomery. levels = 0: e = k; else e = (k mod q) rev_L(k / q)
extern "C" __global__ void ntt_twiddles(u32* out, const u64* squares, const int levels, const int log_q, const u64 n) {
  const u64 k = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= n) return;
  u64 e = levels ? (k & ((u64(1) << log_q) - 1)) * (__brev(static_cast<u32>(k >> log_q)) >> (32 - levels)) : k;
  Fr power = Fr::one();
  for (int j = 0; e; e >>= 1, j++) {
    if (!(e & 1)) continue;
    Fr square;
    for (int i = 0; i < 4; i++) square.limbs.word[i] = squares[4 * j + i];
    power = power * square;
  }
  const Twiddle t = fixed_operand(power);
  store(out + 16 * k, Z{t.w});
  store(out + 16 * k + 8, Z{t.quotient});
}

// transforms of two and four elements, one vector a thread; root: w as a Montgomery residue. Natural order in and out is
// asked for by `reversed_in` and `reversed_out` being zero.
extern "C" __global__ void ntt_small(u64* data, const u64* root, const int log_n, const u32 reversed_in,
                                     const u32 reversed_out, const u64 vectors) {
  const u64 v = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (v >= vectors) return;
  const int n = 1 << log_n;
  Fr x[4], w;
  for (int i = 0; i < 4; i++) w.limbs.word[i] = root[i];
  for (int j = 0; j < n; j++)
    for (int i = 0; i < 4; i++) x[reversed_in ? reverse(j, log_n) : j].limbs.word[i] = data[4 * (v * n + j) + i];
  for (int k = 0; k < n; k++) {
    Fr sum = Fr::zero(), step = Fr::one(), power = Fr::one();
    for (int i = 0; i < k; i++) step = step * w;
    for (int j = 0; j < n; j++, power = power * step) sum = sum + x[j] * power;
    for (int i = 0; i < 4; i++) data[4 * (v * n + (reversed_out ? reverse(k, log_n) : k)) + i] = sum.limbs.word[i];
  }
}

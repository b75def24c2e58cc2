// SPDX-License-Identifier: Apache-2.0
// CurveOps: the host loops of one curve behind one table of functions, so that Cython names no template.
//
// Arrays are rows of little-endian u64 words (cuda/field.cuh, cuda/curve.cuh): what numpy holds is what the loops read.
// Montgomery form unless a name says canonical. Every call may throw Interrupted or std::bad_alloc; outputs are then
// unspecified. No call keeps a pointer.
#pragma once
#include <cstddef>
#include <cstdint>

#include "parallel.hpp"

namespace pinzk::cpu {

using word = std::uint64_t;  // numpy's uint64; the headers' u64 has the same representation

enum class Which { Fr = 0, Fp = 1 };
enum class Group { G1 = 1, G2 = 2 };
enum class Fault { none = 0, coordinate = 1, curve = 2, subgroup = 3, encoding = 4, infinity = 5 };
enum class Check { range = 1, curve = 2, subgroup = 3 };

// index of the first bad point (or n) and what is wrong with it
struct BadPoint {
  size_t index;
  Fault fault;
};

struct CurveOps {
  virtual ~CurveOps() = default;

  // ---- elements (cpu_loops/elements.hpp) ----
  virtual void to_montgomery(Which, const word* in, word* out, size_t n, const Job&) const = 0;
  virtual void from_montgomery(Which, const word* in, word* out, size_t n, const Job&) const = 0;
  // index of the first row that is not below the modulus, n if all are
  virtual size_t first_unreduced(Which, const word* in, size_t n, const Job&) const = 0;
  // out = a * b (Montgomery product a b / R), element by element; out may be a or b
  virtual void multiply(Which, const word* a, const word* b, word* out, size_t n, const Job&) const = 0;
  // out = a * b - c; Fr
  virtual void multiply_subtract(const word* a, const word* b, const word* c, word* out, size_t n, const Job&) const = 0;
  // out[i] = first * base^i; Fr
  virtual void powers(const word* first, const word* base, word* out, size_t n, const Job&) const = 0;
  // out = 1 / in, zero for zero; Fr; out may be in
  virtual void invert(const word* in, word* out, size_t n, const Job&) const = 0;

  // ---- transforms over Fr (cpu_loops/ntt.hpp); twiddles: w^i for i < n/2 in bit-reversed order,
  //      w a primitive n-th root ----
  // natural order in, bit-reversed out, in place: X_k = sum x_j w^(jk)
  virtual void dif(word* data, int log_n, const word* twiddles, const Job&) const = 0;
  // bit-reversed order in, natural out, in place, the same sum
  virtual void dit(word* data, int log_n, const word* twiddles, const Job&) const = 0;
  virtual void bit_reverse(word* data, int log_n, const Job&) const = 0;

  // ---- points (cpu_loops/points.hpp, cpu/msm.hpp) ----
  virtual BadPoint first_bad_point(Group, const word* points, size_t n, Check, const Job&) const = 0;
  // out (affine) = sum scalars[i] * bases[i]; scalars canonical, < r
  virtual void msm(Group, const word* bases, const word* scalars, size_t n, word* out, const Job&) const = 0;
  // out (affine) = sum over sets s of 2^(width s) (V_0 + sum 2^(k-1) V_k), V_0 .. V_(width-1) a set's rows, as Xyzz
  virtual void weighted_sum(Group, const word* sums, size_t sets, int width, word* out) const = 0;
  // out[i] = scalars[i] * base
  virtual void fixed_base(Group, const word* base, const word* scalars, size_t n, word* out, const Job&) const = 0;
  virtual void generator(Group, word* out) const = 0;
  // big-endian uncompressed points (cpu_loops/encoding.hpp); decoded in place, infinity is a fault
  virtual BadPoint decode_points(Group, word* points, size_t n, const Job&) const = 0;
  virtual void encode_points(Group, const word* points, word* out, size_t n, const Job&) const = 0;

  // ---- sparse rows (cpu_loops/sparse.hpp) ----
  // out[row] = sum values[k] * w[indices[k]] over k in [indptr[row], indptr[row+1]); values hold c R^2, w is canonical,
  // so each product is the Montgomery form of c w
  virtual void sparse_rows(const word* indptr, const std::uint32_t* indices, const word* values, size_t rows,
                           const word* witness, word* out, const Job&) const = 0;
};

const CurveOps* bn254_ops();
const CurveOps* bls12_381_ops();
const CurveOps* toy_ops();

}  // namespace pinzk::cpu

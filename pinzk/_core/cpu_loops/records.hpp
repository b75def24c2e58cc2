// SPDX-License-Identifier: Apache-2.0
// Records of a file into sparse rows: zkey coefficients, r1cs constraints; every index and value is checked on the way.
//
// Both kinds come in pieces, so that a big section never lies in memory beside the rows made of it, and twice: a first pass
// checks and counts, a second one places. The second pass checks again, because the file may change between the two.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "curve_ops.hpp"

namespace pinzk::cpu {

enum class RecordFault { none = 0, matrix = 1, row = 2, column = 3, value = 4, changed = 5 };

// one matrix in the making: rows + 1 offsets, then the columns and values they delimit
struct SparseTarget {
  word* indptr;
  word* cursor;  // per row for coefficients, one for constraints: where the next entry goes
  std::uint32_t* indices;
  word* values;
};

// what the numbers of a record must stay below
struct RecordLimits {
  size_t rows, columns;
  word modulus[4];
};

constexpr size_t value_bytes = 32, coefficient_bytes = 12 + value_bytes, term_bytes = 4 + value_bytes;

inline std::uint32_t load_u32(const std::uint8_t* p) {
  std::uint32_t x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

inline bool value_reduced(const std::uint8_t* p, const word* modulus) {
  word x[4];
  std::memcpy(x, p, value_bytes);
  for (int i = 3; i >= 0; i--)
    if (x[i] != modulus[i]) return x[i] < modulus[i];
  return false;
}

inline RecordFault place(const SparseTarget& t, word& cursor, word end, std::uint32_t column, const std::uint8_t* value) {
  if (cursor >= end) return RecordFault::changed;
  t.indices[cursor] = column;
  std::memcpy(t.values + 4 * cursor, value, value_bytes);
  cursor++;
  return RecordFault::none;
}

// ---- zkey section 4: (matrix, row, column, value), rows in any order ----

inline RecordFault coefficient_fault(const std::uint8_t* p, const RecordLimits& limits) {
  if (load_u32(p) > 1) return RecordFault::matrix;
  if (load_u32(p + 4) >= limits.rows) return RecordFault::row;
  if (load_u32(p + 8) >= limits.columns) return RecordFault::column;
  return value_reduced(p + 12, limits.modulus) ? RecordFault::none : RecordFault::value;
}

// indptr[row + 1] += 1 in the record's matrix. Returns the index of the first bad record (n if there is none).
inline size_t count_coefficients(const std::uint8_t* p, size_t n, const RecordLimits& limits, const SparseTarget* targets,
                                 RecordFault& fault) {
  for (size_t i = 0; i < n; i++, p += coefficient_bytes) {
    fault = coefficient_fault(p, limits);
    if (fault != RecordFault::none) return i;
    targets[load_u32(p)].indptr[load_u32(p + 4) + 1]++;
  }
  return n;
}

// indptr now holds offsets, cursor[row] starts as indptr[row]
inline size_t place_coefficients(const std::uint8_t* p, size_t n, const RecordLimits& limits, const SparseTarget* targets,
                                 RecordFault& fault) {
  for (size_t i = 0; i < n; i++, p += coefficient_bytes) {
    fault = coefficient_fault(p, limits);
    if (fault != RecordFault::none) return i;
    const SparseTarget& t = targets[load_u32(p)];
    const size_t row = load_u32(p + 4);
    fault = place(t, t.cursor[row], t.indptr[row + 1], load_u32(p + 8), p + 12);
    if (fault != RecordFault::none) return i;
  }
  return n;
}

// ---- r1cs section 2: per constraint three combinations, each a count and so many (column, value) ----

// where the walk over the section stands, kept from piece to piece
struct ConstraintWalk {
  word combination;  // 3 * row + matrix
  word remaining;    // terms still to come of a combination whose count was read
  word inside;       // whether its count was read
};

// Takes whole items off a piece and returns the bytes taken; stops at a fault. With `filling`, places what it counted
// before.
inline size_t walk_constraints(const std::uint8_t* piece, size_t size, const RecordLimits& limits,
                               const SparseTarget* targets, bool filling, ConstraintWalk& walk, RecordFault& fault) {
  fault = RecordFault::none;
  size_t taken = 0;
  while (walk.combination < 3 * limits.rows) {
    const SparseTarget& t = targets[walk.combination % 3];
    const size_t row = walk.combination / 3;
    if (!walk.inside) {
      if (size - taken < 4) break;
      walk.remaining = load_u32(piece + taken);
      walk.inside = 1;
      taken += 4;
      if (!filling)
        t.indptr[row + 1] = t.indptr[row] + walk.remaining;
      else if (*t.cursor != t.indptr[row] || walk.remaining != t.indptr[row + 1] - t.indptr[row])
        fault = RecordFault::changed;
    }
    while (walk.remaining && fault == RecordFault::none) {
      if (size - taken < term_bytes) return taken;
      const std::uint8_t* term = piece + taken;
      if (load_u32(term) >= limits.columns)
        fault = RecordFault::column;
      else if (!value_reduced(term + 4, limits.modulus))
        fault = RecordFault::value;
      else if (filling)
        fault = place(t, *t.cursor, t.indptr[row + 1], load_u32(term), term + 4);
      taken += term_bytes;
      walk.remaining--;
    }
    if (fault != RecordFault::none) break;
    walk.inside = 0;
    walk.combination++;
  }
  return taken;
}

}  // namespace pinzk::cpu

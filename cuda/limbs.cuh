// SPDX-License-Identifier: Apache-2.0
// Limbs<N>: an integer of N little-endian 64-bit words, and the carry arithmetic under every field.
//
// The only file where host and device differ (one #if): everything above it is written once, compiled by g++ and by NVRTC
// (`-default-device`, so nothing here carries an execution-space mark). `portable` products are for constant expressions;
// run-time code goes through `mac`.
#pragma once

using u32 = unsigned int;
using u64 = unsigned long long;

#define PINZK_INLINE inline __attribute__((always_inline))
// code that runs rarely, or need not be fast: one copy, on the device too
#define PINZK_COLD __attribute__((noinline))

namespace pinzk {

template <int N>
struct Limbs {
  u64 word[N];
};

// ---- products of two words ----

// (hi, lo) = a * b + c + d; never overflows. Constant expressions only: four 32-bit products.
constexpr u64 mac_portable(u64 a, u64 b, u64 c, u64 d, u64& hi) {
  const u64 mask = 0xffffffffu;
  const u64 ll = (a & mask) * (b & mask), lh = (a & mask) * (b >> 32), hl = (a >> 32) * (b & mask),
            hh = (a >> 32) * (b >> 32);
  const u64 mid = (ll >> 32) + (lh & mask) + (hl & mask);
  u64 lo = (ll & mask) | (mid << 32);
  hi = hh + (lh >> 32) + (hl >> 32) + (mid >> 32);
  lo += c;
  hi += lo < c;
  lo += d;
  hi += lo < d;
  return lo;
}

// (carry, result) = sum + a * b + carry; never overflows.
// (carry, result) = a + b + carry, carry in {0, 1}; (borrow, result) = a - b - borrow.
// PINZK_OUTLINE: of a long function the host wants one copy (in cache, and soon compiled); on the device the compiler
// decides.
#if defined(__CUDA_ARCH__)
#define PINZK_UNROLL _Pragma("unroll")
#define PINZK_ROLL _Pragma("unroll 1")
#define PINZK_OUTLINE
PINZK_INLINE u64 mac(u64 sum, u64 a, u64 b, u64& carry) {
  u64 lo, hi;
  asm("mad.lo.cc.u64 %0, %2, %3, %4;\n\tmadc.hi.u64 %1, %2, %3, 0;" : "=&l"(lo), "=l"(hi) : "l"(a), "l"(b), "l"(sum));
  asm("add.cc.u64 %0, %0, %2;\n\taddc.u64 %1, %1, 0;" : "+l"(lo), "+l"(hi) : "l"(carry));
  carry = hi;
  return lo;
}
PINZK_INLINE u64 add_carry(u64 a, u64 b, u64& carry) {
  const u64 t = a + carry, r = t + b;
  carry = (t < carry) | (r < b);
  return r;
}
PINZK_INLINE u64 sub_borrow(u64 a, u64 b, u64& borrow) {
  const u64 t = a - b, r = t - borrow;
  borrow = (a < b) | (t < borrow);
  return r;
}

// The processor's carry flag, word by word: a chain begins with a `_cc` that reads no flag, and must stay inside one
// function.
#define PINZK_CARRY_OP(name, ptx)                                \
  PINZK_INLINE u32 name(u32 a, u32 b) {                          \
    u32 r;                                                       \
    asm volatile(ptx " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); \
    return r;                                                    \
  }
PINZK_CARRY_OP(add_cc, "add.cc.u32")
PINZK_CARRY_OP(addc_cc, "addc.cc.u32")
PINZK_CARRY_OP(addc, "addc.u32")
PINZK_CARRY_OP(sub_cc, "sub.cc.u32")
PINZK_CARRY_OP(subc_cc, "subc.cc.u32")
PINZK_CARRY_OP(subc, "subc.u32")
#undef PINZK_CARRY_OP
// 0 - x, opaque to the compiler: a plain minus would be folded into the next product and break its fusion
PINZK_INLINE u32 negate(u32 x) {
  u32 r;
  asm volatile("sub.u32 %0, 0, %1;" : "=r"(r) : "r"(x));
  return r;
}
// low word of a * b + c + flag
PINZK_INLINE u32 madc_lo(u32 a, u32 b, u32 c) {
  u32 r;
  asm volatile("madc.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
// (hi, lo) = a * b; mad_wide: + (c1, c0), opening a chain; madc_wide: + the flag too. One statement, so one IMAD.WIDE each.
PINZK_INLINE void mul_wide(u32& lo, u32& hi, u32 a, u32 b) {
  asm volatile("mul.lo.u32 %0, %2, %3;\n\tmul.hi.u32 %1, %2, %3;" : "=&r"(lo), "=r"(hi) : "r"(a), "r"(b));
}
PINZK_INLINE void mad_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c0, u32 c1) {
  asm volatile("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(lo), "=r"(hi)
               : "r"(a), "r"(b), "r"(c0), "r"(c1));
}
PINZK_INLINE void madc_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c0, u32 c1) {
  asm volatile("madc.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(lo), "=r"(hi)
               : "r"(a), "r"(b), "r"(c0), "r"(c1));
}
// the line at p is wanted soon
PINZK_INLINE void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
#else
#define PINZK_UNROLL _Pragma("GCC unroll 16")
#define PINZK_ROLL _Pragma("GCC unroll 1")
#define PINZK_OUTLINE __attribute__((noinline))
using u128 = unsigned __int128;
PINZK_INLINE u64 mac(u64 sum, u64 a, u64 b, u64& carry) {
  const u128 t = static_cast<u128>(a) * b + sum + carry;
  carry = static_cast<u64>(t >> 64);
  return static_cast<u64>(t);
}
PINZK_INLINE u64 add_carry(u64 a, u64 b, u64& carry) {
  const u128 t = static_cast<u128>(a) + b + carry;
  carry = static_cast<u64>(t >> 64);
  return static_cast<u64>(t);
}
PINZK_INLINE u64 sub_borrow(u64 a, u64 b, u64& borrow) {
  const u128 t = static_cast<u128>(a) - b - borrow;
  borrow = static_cast<u64>(t >> 64) & 1;
  return static_cast<u64>(t);
}

// The same with a visible flag, so that g++ tests the device's algorithms bit for bit (docs/arithmetic.md, 3). Tests only.
inline thread_local u32 carry_flag = 0;
inline u32 add_cc(u32 a, u32 b) {
  const u64 t = u64(a) + b;
  carry_flag = t >> 32 & 1;
  return static_cast<u32>(t);
}
inline u32 addc_cc(u32 a, u32 b) {
  const u64 t = u64(a) + b + carry_flag;
  carry_flag = t >> 32 & 1;
  return static_cast<u32>(t);
}
inline u32 addc(u32 a, u32 b) { return a + b + carry_flag; }
inline u32 sub_cc(u32 a, u32 b) {
  const u64 t = u64(a) - b;
  carry_flag = t >> 32 & 1;
  return static_cast<u32>(t);
}
inline u32 subc_cc(u32 a, u32 b) {
  const u64 t = u64(a) - b - carry_flag;
  carry_flag = t >> 32 & 1;
  return static_cast<u32>(t);
}
inline u32 subc(u32 a, u32 b) { return a - b - carry_flag; }
inline u32 negate(u32 x) { return 0u - x; }
inline u32 madc_lo(u32 a, u32 b, u32 c) { return a * b + c + carry_flag; }
inline void mul_wide(u32& lo, u32& hi, u32 a, u32 b) {
  const u64 t = u64(a) * b;
  lo = static_cast<u32>(t);
  hi = static_cast<u32>(t >> 32);
}
inline void madc_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c0, u32 c1) {
  const u64 p = u64(a) * b, low = u64(static_cast<u32>(p)) + c0 + carry_flag, high = (p >> 32) + c1 + (low >> 32);
  lo = static_cast<u32>(low);
  hi = static_cast<u32>(high);
  carry_flag = high >> 32 & 1;
}
inline void mad_wide(u32& lo, u32& hi, u32 a, u32 b, u32 c0, u32 c1) {
  carry_flag = 0;
  madc_wide(lo, hi, a, b, c0, c1);
}
PINZK_INLINE void prefetch(const void*) {}
#endif

// ---- whole integers (constexpr where constants are derived from them) ----

template <int N>
constexpr bool is_zero(const Limbs<N>& a) {
  u64 any = 0;
  for (int i = 0; i < N; i++) any |= a.word[i];
  return any == 0;
}

template <int N>
constexpr bool equal(const Limbs<N>& a, const Limbs<N>& b) {
  u64 any = 0;
  for (int i = 0; i < N; i++) any |= a.word[i] ^ b.word[i];
  return any == 0;
}

// a < b as integers
template <int N>
constexpr bool less(const Limbs<N>& a, const Limbs<N>& b) {
  bool below = false;
  for (int i = 0; i < N; i++) below = a.word[i] < b.word[i] || (a.word[i] == b.word[i] && below);
  return below;
}

// r = a - b mod 2^(64N)
template <int N>
constexpr Limbs<N> minus(const Limbs<N>& a, const Limbs<N>& b) {
  Limbs<N> r{};
  u64 borrow = 0;
  for (int i = 0; i < N; i++) {
    const u64 t = a.word[i] - b.word[i];
    r.word[i] = t - borrow;
    borrow = (a.word[i] < b.word[i]) | (t < borrow);
  }
  return r;
}

// a >> 1, the top bit filled with zero
template <int N>
constexpr Limbs<N> half(const Limbs<N>& a) {
  Limbs<N> r{};
  for (int i = 0; i < N; i++) r.word[i] = (a.word[i] >> 1) | (i + 1 < N ? a.word[i + 1] << 63 : 0);
  return r;
}

// number of bits of a; 0 for zero
template <int N>
constexpr int bit_length(const Limbs<N>& a) {
  int bits = 0;
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 64; k++)
      if (a.word[i] >> k & 1) bits = 64 * i + k + 1;
  return bits;
}

template <int N>
PINZK_INLINE constexpr bool bit(const Limbs<N>& a, int i) {
  return a.word[i / 64] >> (i % 64) & 1;
}

// `width` (1..63) bits of a from bit `at`; bits past the top read as zero
template <int N>
PINZK_INLINE constexpr u64 bits(const Limbs<N>& a, int at, int width) {
  const int i = at / 64, shift = at % 64;
  if (i >= N) return 0;
  u64 r = a.word[i] >> shift;
  if (shift + width > 64 && i + 1 < N) r |= a.word[i + 1] << (64 - shift);
  return r & ((u64(1) << width) - 1);
}

// a literal such as hex<4>("30644e72...") ; digits only, no prefix
template <int N, int S>
constexpr Limbs<N> hex(const char (&digits)[S]) {
  Limbs<N> r{};
  for (int i = 0; i < S - 1; i++) {
    const char c = digits[i];
    u64 carry = c <= '9' ? c - '0' : c - 'a' + 10;
    for (int j = 0; j < N; j++) {
      const u64 next = r.word[j] >> 60;
      r.word[j] = (r.word[j] << 4) | carry;
      carry = next;
    }
  }
  return r;
}

}  // namespace pinzk

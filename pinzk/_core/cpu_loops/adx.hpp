// SPDX-License-Identifier: Apache-2.0
// Adx: field arithmetic for x86-64 with BMI2 and ADX, in inline assembly, because compilers spoil two parallel carry chains.
//
// A type beside Portable (cuda/field.cuh), chosen at run time (cpu_loops/machine.hpp). No compiler flag is involved: the
// instructions stand in assembly only, so nothing else in the object file needs a newer processor. The product is the one of
// docs/arithmetic.md, section 3: per word of b, one row t += a b_i on the chains CF and OF, one row t = (t + m p) / 2^64.
#pragma once
#include "inverse.hpp"

#if defined(__x86_64__)
#include <cpuid.h>

// clang-format off: rows of assembly
// t = a * rdx, no sum yet
#define PINZK_FIRST(o, t, u) "mulx " #o "(%[a]), %[lo], %[" #u "]\n\tadc %[lo], %[" #t "]\n\t"
// t += a * rdx, one word
#define PINZK_MAC(o, t, u) "mulx " #o "(%[a]), %[lo], %[hi]\n\tadox %[lo], %[" #t "]\n\tadcx %[hi], %[" #u "]\n\t"
// rdx = b's word, the top word and both carries cleared; and the end of that row
#define PINZK_ROW(o) "mov " #o "(%[b]), %%rdx\n\txor %k[top], %k[top]\n\t"
#define PINZK_ROW_END "mov $0, %k[lo]\n\tadox %[lo], %[top]\n\t"
// t = (t + m p) / 2^64 with m = t_0 * np: first word, further words, last word
#define PINZK_REDUCE                                                                           \
  "mov %[np], %%rdx\n\timul %[t0], %%rdx\n\txor %k[lo], %k[lo]\n\tmulx %[p0], %[lo], %[hi]\n\t" \
  "adcx %[t0], %[lo]\n\tmov %[hi], %[t0]\n\t"
#define PINZK_FOLD(p, t, u) "adcx %[" #u "], %[" #t "]\n\tmulx %[" #p "], %[lo], %[" #u "]\n\tadox %[lo], %[" #t "]\n\t"
#define PINZK_REDUCE_END(t) "mov $0, %k[lo]\n\tadcx %[lo], %[" #t "]\n\tadox %[top], %[" #t "]\n\t"

#define PINZK_FIRST_4                                                                             \
  "mulx (%[a]), %[t0], %[t1]\n\txor %k[lo], %k[lo]\n\t" PINZK_FIRST(8, t1, t2) PINZK_FIRST(16, t2, t3) \
      PINZK_FIRST(24, t3, top) "adc $0, %[top]\n\t"
#define PINZK_ROW_4(o) \
  PINZK_ROW(o) PINZK_MAC(0, t0, t1) PINZK_MAC(8, t1, t2) PINZK_MAC(16, t2, t3) PINZK_MAC(24, t3, top) PINZK_ROW_END
#define PINZK_REDUCE_4 PINZK_REDUCE PINZK_FOLD(p1, t0, t1) PINZK_FOLD(p2, t1, t2) PINZK_FOLD(p3, t2, t3) PINZK_REDUCE_END(t3)

#define PINZK_FIRST_6                                                                             \
  "mulx (%[a]), %[t0], %[t1]\n\txor %k[lo], %k[lo]\n\t" PINZK_FIRST(8, t1, t2) PINZK_FIRST(16, t2, t3) \
      PINZK_FIRST(24, t3, t4) PINZK_FIRST(32, t4, t5) PINZK_FIRST(40, t5, top) "adc $0, %[top]\n\t"
#define PINZK_ROW_6(o)                                                                                                \
  PINZK_ROW(o) PINZK_MAC(0, t0, t1) PINZK_MAC(8, t1, t2) PINZK_MAC(16, t2, t3) PINZK_MAC(24, t3, t4)                  \
  PINZK_MAC(32, t4, t5) PINZK_MAC(40, t5, top) PINZK_ROW_END
#define PINZK_REDUCE_6                                                                                              \
  PINZK_REDUCE PINZK_FOLD(p1, t0, t1) PINZK_FOLD(p2, t1, t2) PINZK_FOLD(p3, t2, t3) PINZK_FOLD(p4, t3, t4)            \
  PINZK_FOLD(p5, t4, t5) PINZK_REDUCE_END(t5)
// clang-format on

#define PINZK_P(i) [p##i] "m"(F::modulus.word[i])

namespace pinzk {

struct Adx : SquareByProduct {
  // leaf 7: BMI2 is bit 8 of EBX, ADX bit 19
  static bool available() {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 8 & 1) && (b >> 19 & 1);
  }

  // bounds as in Portable
  template <class F>
  static PINZK_INLINE F mul(const F& a, const F& b) {
    if constexpr (F::N == 4)
      return mul_inline(a, b);
    else
      return mul_outline(a, b);
  }
  template <class F>
  static PINZK_OUTLINE F mul_outline(const F& a, const F& b) {
    return mul_inline(a, b);
  }
  template <class F>
  static PINZK_INLINE F mul_inline(const F& a, const F& b) {
    static_assert(F::N == 4 || F::N == 6);
    static constexpr u64 np = F::np;
    F t;
    u64* w = t.limbs.word;
    u64 top, lo, hi, rdx = b.limbs.word[0];
    if constexpr (F::N == 4) {
      asm(PINZK_FIRST_4 PINZK_REDUCE_4 PINZK_ROW_4(8) PINZK_REDUCE_4 PINZK_ROW_4(16) PINZK_REDUCE_4 PINZK_ROW_4(24)
              PINZK_REDUCE_4
          : [t0] "=&r"(w[0]), [t1] "=&r"(w[1]), [t2] "=&r"(w[2]), [t3] "=&r"(w[3]), [top] "=&r"(top), [lo] "=&r"(lo),
            [hi] "=&r"(hi), "+&d"(rdx)
          : [a] "r"(&a), [b] "r"(&b), PINZK_P(0), PINZK_P(1), PINZK_P(2), PINZK_P(3), [np] "m"(np), "m"(a), "m"(b)
          : "cc");
    } else {
      asm(PINZK_FIRST_6 PINZK_REDUCE_6 PINZK_ROW_6(8) PINZK_REDUCE_6 PINZK_ROW_6(16) PINZK_REDUCE_6 PINZK_ROW_6(24)
              PINZK_REDUCE_6 PINZK_ROW_6(32) PINZK_REDUCE_6 PINZK_ROW_6(40) PINZK_REDUCE_6
          : [t0] "=&r"(w[0]), [t1] "=&r"(w[1]), [t2] "=&r"(w[2]), [t3] "=&r"(w[3]), [t4] "=&r"(w[4]), [t5] "=&r"(w[5]),
            [top] "=&r"(top), [lo] "=&r"(lo), [hi] "=&r"(hi), "+&d"(rdx)
          : [a] "r"(&a), [b] "r"(&b), PINZK_P(0), PINZK_P(1), PINZK_P(2), PINZK_P(3), PINZK_P(4), PINZK_P(5), [np] "m"(np),
            "m"(a), "m"(b)
          : "cc");
    }
    return reduced(t);
  }

  template <class F>
  static PINZK_INLINE F add(const F& a, const F& b) {
    F t = a;
    u64* w = t.limbs.word;
    const u64* v = b.limbs.word;
    if constexpr (F::N == 4)
      asm("add %4, %0\n\tadc %5, %1\n\tadc %6, %2\n\tadc %7, %3"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3])
          : "rm"(v[0]), "rm"(v[1]), "rm"(v[2]), "rm"(v[3])
          : "cc");
    else
      asm("add %6, %0\n\tadc %7, %1\n\tadc %8, %2\n\tadc %9, %3\n\tadc %10, %4\n\tadc %11, %5"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3]), "+&r"(w[4]), "+&r"(w[5])
          : "m"(v[0]), "m"(v[1]), "m"(v[2]), "m"(v[3]), "m"(v[4]), "m"(v[5])
          : "cc");
    return reduced(t);
  }

  template <class F>
  static PINZK_INLINE F sub(const F& a, const F& b) {
    F t = a;
    u64* w = t.limbs.word;
    const u64* v = b.limbs.word;
    u64 mask;
    if constexpr (F::N == 4)
      asm("sub %5, %0\n\tsbb %6, %1\n\tsbb %7, %2\n\tsbb %8, %3\n\tsbb %4, %4"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3]), "=&r"(mask)
          : "rm"(v[0]), "rm"(v[1]), "rm"(v[2]), "rm"(v[3])
          : "cc");
    else
      asm("sub %7, %0\n\tsbb %8, %1\n\tsbb %9, %2\n\tsbb %10, %3\n\tsbb %11, %4\n\tsbb %12, %5\n\tsbb %6, %6"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3]), "+&r"(w[4]), "+&r"(w[5]), "=&r"(mask)
          : "m"(v[0]), "m"(v[1]), "m"(v[2]), "m"(v[3]), "m"(v[4]), "m"(v[5])
          : "cc");
    u64 p[F::N];
    for (int i = 0; i < F::N; i++) p[i] = F::modulus.word[i] & mask;
    if constexpr (F::N == 4)
      asm("add %4, %0\n\tadc %5, %1\n\tadc %6, %2\n\tadc %7, %3"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3])
          : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3])
          : "cc");
    else
      asm("add %6, %0\n\tadc %7, %1\n\tadc %8, %2\n\tadc %9, %3\n\tadc %10, %4\n\tadc %11, %5"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3]), "+&r"(w[4]), "+&r"(w[5])
          : "rm"(p[0]), "rm"(p[1]), "rm"(p[2]), "rm"(p[3]), "rm"(p[4]), "rm"(p[5])
          : "cc");
    return t;
  }

  template <class F>
  static F inverse(const F& a) {
    return Divsteps<F>::inverse(a);
  }

  // in: a < 2p; out: a mod p
  template <class F>
  static PINZK_INLINE F reduced(const F& a) {
    F t = a;
    u64* w = t.limbs.word;
    const u64* v = a.limbs.word;
    if constexpr (F::N == 4)
      asm("sub %[p0], %0\n\tsbb %[p1], %1\n\tsbb %[p2], %2\n\tsbb %[p3], %3\n\t"
          "cmovc %4, %0\n\tcmovc %5, %1\n\tcmovc %6, %2\n\tcmovc %7, %3"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3])
          : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), PINZK_P(0), PINZK_P(1), PINZK_P(2), PINZK_P(3)
          : "cc");
    else
      asm("sub %[p0], %0\n\tsbb %[p1], %1\n\tsbb %[p2], %2\n\tsbb %[p3], %3\n\tsbb %[p4], %4\n\tsbb %[p5], %5\n\t"
          "cmovc %6, %0\n\tcmovc %7, %1\n\tcmovc %8, %2\n\tcmovc %9, %3\n\tcmovc %10, %4\n\tcmovc %11, %5"
          : "+&r"(w[0]), "+&r"(w[1]), "+&r"(w[2]), "+&r"(w[3]), "+&r"(w[4]), "+&r"(w[5])
          : "rm"(v[0]), "rm"(v[1]), "rm"(v[2]), "rm"(v[3]), "rm"(v[4]), "rm"(v[5]), PINZK_P(0), PINZK_P(1), PINZK_P(2),
            PINZK_P(3), PINZK_P(4), PINZK_P(5)
          : "cc");
    return t;
  }
};

}  // namespace pinzk

#undef PINZK_FIRST
#undef PINZK_MAC
#undef PINZK_ROW
#undef PINZK_ROW_END
#undef PINZK_REDUCE
#undef PINZK_FOLD
#undef PINZK_REDUCE_END
#undef PINZK_FIRST_4
#undef PINZK_ROW_4
#undef PINZK_REDUCE_4
#undef PINZK_FIRST_6
#undef PINZK_ROW_6
#undef PINZK_REDUCE_6
#undef PINZK_P

#endif

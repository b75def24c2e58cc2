// SPDX-License-Identifier: Apache-2.0
// Inverses modulo p on the host, by divsteps in batches of 62 (docs/arithmetic.md, section 3): five to ten times faster than
// a power. Not constant time.
//
// f and g start as p and x and shrink to +-1 and 0; d x = f and e x = g (mod p) hold throughout. Sixty-two steps depend on
// the lowest words of f and g alone, so they are collected in a 2x2 matrix, which is then applied to the long numbers. D. J.
// Bernstein, B.-Y. Yang, eprint 2019/266.
#pragma once
#include <algorithm>
#include <cstdint>

#include "field.cuh"

namespace pinzk {

// signed integer in words of 62 bits, the sign in the last word
template <int L>
struct Signed62 {
  std::int64_t word[L];
};

template <class F>
class Divsteps {
 public:
  static F inverse(const F& x) {
    Number f = split(F::modulus), g = split(x.limbs), d{}, e{};
    e.word[0] = 1;
    std::int64_t eta = -1;
    while (!is_zero(g)) {
      const Matrix t = steps(eta, f.word[0], g.word[0]);
      apply(t, d, e, true);
      apply(t, f, g, false);
    }
    // now f is 1 or -1 (p where x is zero, and d is zero then)
    return F::mul(join(d, f.word[L - 1] < 0), F{cube_of_r});
  }

 private:
  static constexpr int N = F::N, L = (64 * N + 2 + 61) / 62;
  static constexpr std::int64_t low = (std::int64_t(1) << 62) - 1;
  static constexpr Limbs<N> cube_of_r = derive::product(F::r2, F::r2, F::modulus);
  using Number = Signed62<L>;
  using i128 = __int128;

  // (f, g) -> (u f + v g, q f + r g) / 2^62
  struct Matrix {
    std::int64_t u, v, q, r;
  };

  static constexpr Number split(const Limbs<N>& a) {
    Number n{};
    for (int i = 0; i < L; i++) {
      const int at = 62 * i / 64, shift = 62 * i % 64;
      u64 w = a.word[at] >> shift;
      if (shift > 2 && at + 1 < N) w |= a.word[at + 1] << (64 - shift);
      n.word[i] = static_cast<std::int64_t>(w & low);
    }
    return n;
  }
  static constexpr Number p = split(F::modulus);

  static bool is_zero(const Number& n) {
    std::int64_t any = 0;
    for (int i = 0; i < L; i++) any |= n.word[i];
    return any == 0;
  }

  static Matrix steps(std::int64_t& eta, std::int64_t f0, std::int64_t g0) {
    u64 u = 1, v = 0, q = 0, r = 1, f = f0, g = g0;
    for (int left = 62;;) {
      const int zeros = __builtin_ctzll(g | ~u64(0) << left);
      g >>= zeros;
      u <<= zeros;
      v <<= zeros;
      eta -= zeros;
      left -= zeros;
      if (left == 0) break;
      if (eta < 0) {
        eta = -eta;
        u64 t = f;
        f = g, g = 0 - t;
        t = u;
        u = q, q = 0 - t;
        t = v;
        v = r, r = 0 - t;
      }
      // w f cancels up to six low bits of g, as many as no exchange may come between
      const int limit = static_cast<int>(std::min<std::int64_t>({eta + 1, left, 6}));
      const u64 w = g * f * (f * f - 2) & ((u64(1) << limit) - 1);
      g += f * w;
      q += u * w;
      r += v * w;
    }
    return {static_cast<std::int64_t>(u), static_cast<std::int64_t>(v), static_cast<std::int64_t>(q),
            static_cast<std::int64_t>(r)};
  }

  // (a, b) = t (a, b) / 2^62: exact for f, g; for d, e modulo p, in and out within (-2p, p)
  static void apply(const Matrix& t, Number& a, Number& b, bool modulo_p) {
    i128 x = i128(t.u) * a.word[0] + i128(t.v) * b.word[0], y = i128(t.q) * a.word[0] + i128(t.r) * b.word[0];
    std::int64_t m = 0, n = 0;  // multiples of p that make x, y divisible and keep the range
    if (modulo_p) {
      const std::int64_t a_sign = a.word[L - 1] >> 63, b_sign = b.word[L - 1] >> 63;
      m = (t.u & a_sign) + (t.v & b_sign);
      n = (t.q & a_sign) + (t.r & b_sign);
      m -= ((0 - F::np) * static_cast<u64>(x) + m) & low;
      n -= ((0 - F::np) * static_cast<u64>(y) + n) & low;
      x += i128(p.word[0]) * m;
      y += i128(p.word[0]) * n;
    }
    x >>= 62;
    y >>= 62;
    for (int i = 1; i < L; i++) {
      x += i128(t.u) * a.word[i] + i128(t.v) * b.word[i];
      y += i128(t.q) * a.word[i] + i128(t.r) * b.word[i];
      if (modulo_p) {
        x += i128(p.word[i]) * m;
        y += i128(p.word[i]) * n;
      }
      a.word[i - 1] = static_cast<std::int64_t>(x) & low;
      b.word[i - 1] = static_cast<std::int64_t>(y) & low;
      x >>= 62;
      y >>= 62;
    }
    a.word[L - 1] = static_cast<std::int64_t>(x);
    b.word[L - 1] = static_cast<std::int64_t>(y);
  }

  // d or -d, from (-2p, p) into [0, p)
  static F join(Number d, bool negate) {
    if (d.word[L - 1] < 0) add_p(d);
    if (negate)
      for (auto& w : d.word) w = -w;
    carry(d);
    if (d.word[L - 1] < 0) add_p(d);
    F x = F::zero();
    for (int i = 0; i < L; i++) {
      const int at = 62 * i / 64, shift = 62 * i % 64;
      x.limbs.word[at] |= static_cast<u64>(d.word[i]) << shift;
      if (shift > 2 && at + 1 < N) x.limbs.word[at + 1] |= static_cast<u64>(d.word[i]) >> (64 - shift);
    }
    return x;
  }
  static void add_p(Number& d) {
    for (int i = 0; i < L; i++) d.word[i] += p.word[i];
    carry(d);
  }
  static void carry(Number& d) {
    for (int i = 0; i + 1 < L; i++) {
      d.word[i + 1] += d.word[i] >> 62;
      d.word[i] &= low;
    }
  }
};

// Portable arithmetic with the host's inverse.
struct Host : Portable {
  template <class F>
  static F inverse(const F& a) {
    return Divsteps<F>::inverse(a);
  }
};

}  // namespace pinzk

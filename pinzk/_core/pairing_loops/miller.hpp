// SPDX-License-Identifier: Apache-2.0
// The optimal ate Miller loop, shared by any number of pairs, over lines that are prepared per point of G2.
//
// Lines come from homogeneous coordinates without inversion (Costello, Lange and Naehrig, eprint 2009/615; Aranha et al.,
// eprint 2010/526), each scaled by factors of proper subfields, which the final exponentiation sends to one.
#pragma once
#include "pairing_constants.hpp"

namespace pinzk::pairing {

// y * y_P + x * x_P + c, each part at the power of w that the twist asks for
template <class F>
struct Line {
  F y, x, c;
};

// the point that a Miller loop carries along: x = X/Z, y = Y/Z on the twist
template <class C>
struct Walker {
  using F = Fp2<typename C::Curve::Fp>;
  F x, y, z;

  // this = 2 this; the tangent
  Line<F> twice() {
    const F b = y.squared(), c = z.squared(), e = (c.doubled() + c) * C::Curve::G2::b(), f = e.doubled() + e;
    const F h = (y + z).squared() - b - c, xx = x.squared(), ee = e.squared().doubled().doubled();
    const Line<F> line{-h, xx.doubled() + xx, e - b};
    x = (x * y * (b - f)).doubled();
    y = (b + f).squared() - ee.doubled() - ee;
    z = (b * h).doubled().doubled();
    return line;
  }

  // this += q; the chord. Where this = q, this = -q or Z = 0 before, Z = 0 after and for ever.
  Line<F> add(const Affine<F>& q) {
    const F t = y - q.y * z, l = x - q.x * z, ll = l.squared(), e = l * ll, g = x * ll;
    const F h = e + z * t.squared() - g.doubled();
    const Line<F> line{l, -t, t * q.x - l * q.y};
    x = l * h;
    y = t * (g - h) - e * y;
    z *= e;
    return line;
  }

  bool is(const Affine<F>& q) const { return !z.is_zero() && x == q.x * z && y == q.y * z; }
};

// The lines of one point of G2.
//
// in: a point on the twist. `in_subgroup` tells whether it has order r (or is infinity): what the loop ends on is compared
// with the image under psi, and a point passes just when (z - psi) or (6z + 2 + psi - psi^2 + psi^3) kills it. The norms
// of these endomorphisms share only r with the order of the twist (tests/test_pairing.py), so no other point passes.
template <class C>
struct Prepared {
  using F = Fp2<typename C::Curve::Fp>;

  std::vector<Line<F>> lines;  // none for infinity
  bool in_subgroup = true;

  Prepared() = default;
  explicit Prepared(const Affine<F>& q) {
    if (q.is_infinity()) return;
    const Digits& loop = Constants<C>::get().loop;
    lines.reserve(2 * loop.size());
    Walker<C> t{q.x, q.y, F::one()};
    for (size_t i = loop.size() - 1; i-- > 0;) {
      lines.push_back(t.twice());
      if (loop[i]) lines.push_back(t.add(loop[i] > 0 ? q : -q));
    }
    const Affine<F> q1 = psi<C>(q);
    if constexpr (C::family == Family::bn) {
      const Affine<F> q2 = psi<C>(q1);
      lines.push_back(t.add(q1));
      lines.push_back(t.add(-q2));
      in_subgroup = t.is(-psi<C>(q2));
    } else {
      in_subgroup = t.is(C::seed_negative ? -q1 : q1);
    }
  }
};

template <class C>
struct Pair {
  Affine<typename C::Curve::Fp> p;
  const Prepared<C>* q;
};

template <class C>
Fp12<C> times_line(const Fp12<C>& f, const Line<Fp2<typename C::Curve::Fp>>& line, const Affine<typename C::Curve::Fp>& p) {
  const auto y = line.y.times(p.y), x = line.x.times(p.x);
  return C::twist == Twist::d ? f.times_013(y, x, line.c) : f.times_023(line.c, x, y);
}

// product over the pairs, before the final exponentiation; a pair with infinity counts as one
template <class C>
Fp12<C> miller_loop(std::vector<Pair<C>> pairs) {
  size_t kept = 0;
  for (const Pair<C>& pair : pairs)
    if (!pair.p.is_infinity() && !pair.q->lines.empty()) pairs[kept++] = pair;
  pairs.resize(kept);
  Fp12<C> f = Fp12<C>::one();
  if (pairs.empty()) return f;
  size_t next = 0;
  const auto step = [&] {
    for (const Pair<C>& pair : pairs) f = times_line<C>(f, pair.q->lines[next], pair.p);
    next++;
  };
  const Digits& loop = Constants<C>::get().loop;
  for (size_t i = loop.size() - 1; i-- > 0;) {
    if (next) f = f.squared();
    step();
    if (loop[i]) step();
  }
  if constexpr (C::family == Family::bn) {
    step();
    step();
  }
  return C::seed_negative ? f.conjugate() : f;
}

}  // namespace pinzk::pairing

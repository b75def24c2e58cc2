// SPDX-License-Identifier: Apache-2.0
// Loops over points: checks at load, batch conversion to affine, multiples of one base.
#pragma once
#include "elements.hpp"
#include "subgroup.hpp"

namespace pinzk::cpu {

constexpr size_t point_grain = 1 << 10;

template <class P, class M>
bool coordinate_reduced(const Field<P, M>& x) {
  return less(x.limbs, Field<P, M>::modulus);
}
template <class F>
bool coordinate_reduced(const Fp2<F>& x) {
  return coordinate_reduced(x.c0) && coordinate_reduced(x.c1);
}

template <class Curve, bool second>
Fault point_fault(const typename Subgroup<Curve, second>::Point& p, Check check) {
  if (!coordinate_reduced(p.x) || !coordinate_reduced(p.y)) return Fault::coordinate;
  if (check >= Check::curve && !p.on_curve(Subgroup<Curve, second>::G::b())) return Fault::curve;
  if (check >= Check::subgroup && !Subgroup<Curve, second>::contains(p)) return Fault::subgroup;
  return Fault::none;
}

template <class Curve, bool second>
BadPoint first_bad_point(const word* points, size_t n, Check check, const Job& job) {
  const auto* p = rows<typename Subgroup<Curve, second>::Point>(points);
  const size_t grain = check == Check::subgroup ? 16 : point_grain;
  const size_t i =
      first_index(n, grain, job, [=](size_t k) { return point_fault<Curve, second>(p[k], check) != Fault::none; });
  return {i, i < n ? point_fault<Curve, second>(p[i], check) : Fault::none};
}

// one inversion for a whole chunk
template <class F>
void batch_to_affine(const Xyzz<F>* in, Affine<F>* out, size_t n, std::vector<F>& zzz, std::vector<F>& scratch) {
  zzz.resize(n);
  for (size_t i = 0; i < n; i++) zzz[i] = in[i].zzz;
  batch_invert(zzz.data(), zzz.data(), n, scratch);
  for (size_t i = 0; i < n; i++) {
    const F z = zzz[i] * in[i].zz;
    out[i] = {in[i].x * z.squared(), in[i].y * zzz[i]};  // infinity: zzz, zz = 0, so (0, 0)
  }
}

// out[i] = scalars[i] * base, by a table of every digit's multiple in each window
template <class G, class Fr>
void fixed_base(const word* base, const word* scalars, size_t n, word* out, const Job& job) {
  using F = typename G::F;
  constexpr int c = 8, windows = (Fr::bits + c - 1) / c, digits = (1 << c) - 1;
  std::vector<Affine<F>> table(size_t(windows) * digits);
  {
    std::vector<Xyzz<F>> multiples(table.size());
    Xyzz<F> b = Xyzz<F>::from(*rows<Affine<F>>(base));
    for (int w = 0; w < windows; w++) {
      Xyzz<F> m = b;
      for (int d = 0; d < digits; d++, m.add(b)) multiples[size_t(w) * digits + d] = m;
      b = m;
    }
    std::vector<F> zzz, scratch;
    batch_to_affine(multiples.data(), table.data(), table.size(), zzz, scratch);
  }
  const auto* k = rows<Limbs<Fr::N>>(scalars);
  auto* result = rows<Affine<F>>(out);
  parallel_for(n, point_grain / 4, job, [&](size_t begin, size_t end, int) {
    std::vector<Xyzz<F>> sums(end - begin, Xyzz<F>::infinity());
    for (size_t i = begin; i < end; i++)
      for (int w = 0; w < windows; w++)
        if (const u64 d = bits(k[i], w * c, c)) sums[i - begin].add(table[size_t(w) * digits + d - 1]);
    std::vector<F> zzz, scratch;
    batch_to_affine(sums.data(), result + begin, sums.size(), zzz, scratch);
  });
}

}  // namespace pinzk::cpu

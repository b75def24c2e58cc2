// SPDX-License-Identifier: Apache-2.0
// Loops over points: checks at load, batch conversion to affine, multiples of one base.
#pragma once
#include "digits.hpp"
#include "run_adder.hpp"
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

// out = sum over sets s of 2^(width s) (V_0 + sum 2^(k-1) V_k): what cuda/msm.cuh leaves; one chain of doublings
template <class F>
void weighted_sum(const word* sums, size_t sets, int width, word* out) {
  const auto* v = rows<Xyzz<F>>(sums);
  Xyzz<F> total = Xyzz<F>::infinity();
  for (size_t s = sets; s-- > 0;)
    for (int k = width; k-- > 0;) {
      total = total.doubled();
      if (k + 1 < width) total.add(v[s * width + k + 1]);
      if (k == 0) total.add(v[s * width]);
    }
  *rows<Affine<F>>(out) = total.to_affine();
}

// out[i] = scalars[i] * base: a table of every digit's multiple in each window, then one sum per scalar
template <class G, class Fr>
void fixed_base(const word* base, const word* scalars, size_t n, word* out, const Job& job) {
  using F = typename G::F;
  constexpr int max_width = 14;
  const Windows<Fr> windows(Windows<Fr>::best_count(n, 6, 6, max_width));
  std::vector<size_t> table_at(windows.count + 1);
  for (int w = 0; w < windows.count; w++) table_at[w + 1] = table_at[w] + windows.buckets(w);
  std::vector<Affine<F>> table(table_at[windows.count]);  // table_at[w] + d - 1: d 2^start(w) base
  {
    std::vector<Xyzz<F>> powers(windows.count);
    Xyzz<F> b = Xyzz<F>::from(*rows<Affine<F>>(base));
    for (int w = 0; w < windows.count; w++) {
      powers[w] = b;
      for (int i = 0; i < windows.width(w); i++) b = b.doubled();
    }
    std::vector<Affine<F>> firsts(windows.count);
    std::vector<F> zzz, scratch;
    batch_to_affine(powers.data(), firsts.data(), firsts.size(), zzz, scratch);
    parallel_for(windows.count, 1, job, [&](size_t w, size_t, int) {
      Affine<F>* m = &table[table_at[w]];
      m[0] = firsts[w];
      PairAdder<F> adder;
      std::vector<Term<F>> pairs;
      for (size_t k = 1; k < windows.buckets(w); k *= 2) {  // k + 1 .. 2k from 1 .. k
        pairs.clear();
        for (size_t i = 0; i < k; i++) pairs.insert(pairs.end(), {m + i, m + k - 1});
        adder.add(pairs.data(), k, m + k);
      }
    });
  }
  const auto* k = rows<Limbs<Fr::N>>(scalars);
  auto* result = rows<Affine<F>>(out);
  std::vector<RunAdder<F>> adders(job.threads);
  const size_t grain = std::max<size_t>(1, RunAdder<F>::max_terms / windows.count);
  parallel_for(n, grain, job, [&](size_t begin, size_t end, int worker) {
    RunAdder<F>& adder = adders[worker];
    adder.clear();
    for (size_t i = begin; i < end; i++) {
      const OffsetScalar<Fr> scalar(k[i], windows);
      const size_t before = adder.terms.size();
      for (int w = 0; w < windows.count; w++)
        if (const int d = scalar.digit(windows, w)) adder.terms.push_back({&table[table_at[w] + std::abs(d) - 1], d < 0});
      adder.runs.push_back({i, adder.terms.size() - before});
    }
    adder.reduce();
    const Term<F>* term = adder.terms.data();
    for (const Run& run : adder.runs) result[run.key] = run.count ? (term++)->value() : Affine<F>::infinity();
  });
}

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// RunAdder: sums of many runs of points at once, and the weighted sum of buckets: both trees of pair additions.
#pragma once
#include <algorithm>

#include "pair_adder.hpp"

namespace pinzk::cpu {

// `count` terms in a row that are to be added up; `key` is the caller's.
struct Run {
  size_t key;
  size_t count;
};

// One thread's room for adding up terms.
template <class F>
class RunAdder {
 public:
  // enough for inversions to cost little; points and denominators stay in the second-level cache
  static constexpr size_t max_terms = std::min<size_t>(4096, (3 << 17) / sizeof(Affine<F>));

  std::vector<Term<F>> terms;
  std::vector<Run> runs;

  void clear() { terms.clear(), runs.clear(); }

  // leaves one term per run that had any, pointing into this object or to where the run's only term pointed
  void reduce() {
    points_.resize(terms.size());
    Affine<F>* free = points_.data();
    for (bool more = true; more;) {
      more = false;
      pairs_.clear();
      Affine<F>* sums = free;
      size_t from = 0, to = 0;
      for (Run& run : runs) {
        const size_t half = run.count / 2;
        pairs_.insert(pairs_.end(), terms.begin() + from, terms.begin() + from + 2 * half);
        if (run.count % 2) pairs_last_ = terms[from + run.count - 1];
        for (size_t i = 0; i < half; i++) terms[to++] = free++;
        if (run.count % 2) terms[to++] = pairs_last_;
        from += run.count;
        run.count -= half;
        more |= run.count > 1;
      }
      adder_.add(pairs_.data(), pairs_.size() / 2, sums);
    }
  }

  // sum of (i + 1) buckets[i], i < n = 2^k, none for an empty one: trees over the halves of the index's bits
  Xyzz<F> weighted_sum(std::vector<Term<F>>& buckets) {
    // all: sums over neighbours, so that after b rounds all[j] covers the 2^b buckets from j 2^b; bit b of the index is the
    // parity of j. odd[b] holds what remains to be added up of the odd ones.
    std::vector<std::vector<Term<F>>> odd;
    points_.resize(2 * buckets.size());
    Affine<F>* free = points_.data();
    std::vector<Term<F>>& all = buckets;
    while (all.size() > 1) {
      odd.emplace_back(all.size() / 2);
      for (size_t j = 0; j < all.size() / 2; j++) odd.back()[j] = all[2 * j + 1];
      pairs_.clear();
      Affine<F>* sums = free;
      auto halve = [&](std::vector<Term<F>>& v) {
        if (v.size() == 1) return;
        for (size_t j = 0; j < v.size() / 2; j++) {
          const Term<F> a = v[2 * j], b = v[2 * j + 1];
          if (a && b) {
            pairs_.push_back(a);
            pairs_.push_back(b);
            v[j] = free++;
          } else {
            v[j] = a ? a : b;
          }
        }
        v.resize(v.size() / 2);
      };
      halve(all);
      for (auto& v : odd) halve(v);
      adder_.add(pairs_.data(), pairs_.size() / 2, sums);
    }
    Xyzz<F> sum = Xyzz<F>::infinity();
    for (size_t b = odd.size(); b-- > 0;) {
      sum = sum.doubled();
      sum.add(odd[b][0].value());
    }
    sum.add(all[0].value());
    return sum;
  }

 private:
  PairAdder<F> adder_;
  std::vector<Term<F>> pairs_;
  Term<F> pairs_last_;
  std::vector<Affine<F>> points_;
};

}  // namespace pinzk::cpu

// SPDX-License-Identifier: Apache-2.0
// Multi-scalar multiplication: signed buckets, summed as trees of affine additions (docs/arithmetic.md, section 7).
//
// Per window the points are sorted by bucket; neighbours of one bucket are added in rounds, thousands of pairs to an
// inversion. Work is cut by position in the sorted list, so one full bucket costs as much as many half-empty ones, and every
// thread has the same share. The sum of d * bucket[d] is a tree of the same additions.
#pragma once
#include "digits.hpp"
#include "run_adder.hpp"

namespace pinzk::cpu {

// few points: one shared chain of doublings
template <class F, int M>
Xyzz<F> msm_small(const Affine<F>* bases, const Limbs<M>* scalars, size_t n) {
  int top = 0;
  for (size_t i = 0; i < n; i++) top = std::max(top, bit_length(scalars[i]));
  Xyzz<F> sum = Xyzz<F>::infinity();
  for (int k = top - 1; k >= 0; k--) {
    sum = sum.doubled();
    for (size_t i = 0; i < n; i++)
      if (bit(scalars[i], k)) sum.add(bases[i]);
  }
  return sum;
}

// The windows [first, last) of one product: digits sorted by bucket, bucket sums, window sums.
template <class F, class Fr>
class WindowGroup {
 public:
  WindowGroup(const Windows<Fr>& windows, int first, int last, const Affine<F>* bases, const Limbs<Fr::N>* scalars,
              const Active& active, const Job& job)
      : windows_(windows), first_(first), last_(last), bases_(bases), scalars_(scalars), active_(active), job_(job) {}

  // sums[w] for every window of the group that has digits
  void sum(Xyzz<F>* sums) {
    sort();
    std::vector<RunAdder<F>> adders(job_.threads);
    add_buckets(adders);
    parallel_for(last_ - first_, 1, job_, [&](size_t begin, size_t, int worker) {
      const int w = first_ + static_cast<int>(begin);
      const size_t n = windows_.buckets(w), at = bucket_at_[begin];
      if (start_[at] == start_[at + n]) return;
      std::vector<Term<F>> buckets(n);
      for (size_t d = 0; d < n; d++)
        if (start_[at + d] < start_[at + d + 1]) buckets[d] = &bucket_[at + d];
      sums[w] = adders[worker].weighted_sum(buckets);
    });
  }

 private:
  // entry: 2 * index + (1 if the point counts negative); bucket d - 1 of window w is bucket_at_[w - first] + d - 1, its
  // entries are entry_[start_[b]] up to entry_[start_[b + 1]]
  void sort() {
    const int count = last_ - first_;
    // only window 0 has digits of narrow scalars
    auto points = [&](size_t g) { return first_ + g == 0 ? active_.index.size() : active_.wide; };
    std::vector<size_t> digit_at(count + 1);
    for (int g = 0; g < count; g++) digit_at[g + 1] = digit_at[g] + points(g);
    std::vector<std::int32_t> digit(digit_at[count]);
    parallel_for(points(0), element_grain / 4, job_, [&](size_t begin, size_t end, int) {
      for (size_t i = begin; i < end; i++) {
        const OffsetScalar<Fr> k(scalars_[active_.index[i]], windows_);
        const int used = i < active_.wide ? count : 1;
        for (int g = 0; g < used; g++) digit[digit_at[g] + i] = k.digit(windows_, first_ + g);
      }
    });
    bucket_at_.assign(count + 1, 0);
    for (int g = 0; g < count; g++) bucket_at_[g + 1] = bucket_at_[g] + windows_.buckets(first_ + g);
    start_.assign(bucket_at_[count] + 1, 0);
    std::vector<size_t> entries(count + 1);
    parallel_for(count, 1, job_, [&](size_t g, size_t, int) {
      size_t* size = &start_[bucket_at_[g]];
      for (size_t i = 0; i < points(g); i++)
        if (const int d = digit[digit_at[g] + i]) size[std::abs(d) - 1]++;
      for (size_t b = 0; b < windows_.buckets(first_ + g); b++) entries[g + 1] += size[b];
    });
    for (int g = 0; g < count; g++) entries[g + 1] += entries[g];
    entry_.resize(entries[count]);
    parallel_for(count, 1, job_, [&](size_t g, size_t, int) {
      const size_t buckets = windows_.buckets(first_ + g);
      size_t* start = &start_[bucket_at_[g]];
      std::vector<size_t> next(buckets);
      size_t at = entries[g];
      for (size_t b = 0; b < buckets; b++) {
        const size_t size = start[b];
        start[b] = next[b] = at;
        at += size;
      }
      for (size_t i = 0; i < points(g); i++)
        if (const int d = digit[digit_at[g] + i]) entry_[next[std::abs(d) - 1]++] = 2 * active_.index[i] + (d < 0);
    });
    start_.back() = entries[count];
  }

  // a bucket's share of a slice, where the bucket goes on in a neighbouring slice
  struct Part {
    size_t key;
    Affine<F> point;
  };

  void add_buckets(std::vector<RunAdder<F>>& adders) {
    bucket_.resize(start_.size() - 1);
    std::vector<Part> parts = add_slices(
        adders, entry_.size(), [&](size_t i) { return Term<F>(bases_ + entry_[i] / 2, entry_[i] & 1); },
        [&](size_t i) -> size_t { return std::upper_bound(start_.begin(), start_.end(), i) - start_.begin() - 1; },
        [&](size_t key, size_t) { return start_[key + 1]; });
    while (!parts.empty()) {
      parts = add_slices(
          adders, parts.size(), [&](size_t i) { return Term<F>(&parts[i].point); }, [&](size_t i) { return parts[i].key; },
          [&](size_t key, size_t i) {
            while (i < parts.size() && parts[i].key == key) i++;
            return i;
          });
    }
  }

  // Cuts positions [0, n) of a sorted list into slices and adds up every bucket's terms in each. A bucket that lies in one
  // slice is done; parts of the others are returned, sorted. term(i): at a position; key(i): its bucket; end(key, i): where
  // the bucket of position i ends.
  template <class TermAt, class KeyAt, class EndOf>
  std::vector<Part> add_slices(std::vector<RunAdder<F>>& adders, size_t n, TermAt term, KeyAt key, EndOf end_of) {
    const size_t grain = RunAdder<F>::max_terms, slices = (n + grain - 1) / grain;
    std::vector<Part> part(2 * slices);
    std::vector<char> used(2 * slices);
    parallel_for(n, grain, job_, [&](size_t begin, size_t end, int worker) {
      RunAdder<F>& adder = adders[worker];
      adder.clear();
      for (size_t i = begin, k = key(begin); i < end;) {
        const size_t stop = std::min(end_of(k, i), end);
        adder.runs.push_back({k, stop - i});
        while (i < stop) adder.terms.push_back(term(i++));
        if (i < end) k = key(i);
      }
      adder.reduce();
      const bool open_left = begin > 0 && key(begin - 1) == adder.runs.front().key;
      const bool open_right = end < n && key(end) == adder.runs.back().key;
      for (size_t r = 0; r < adder.runs.size(); r++) {
        const bool first = r == 0 && open_left, last = r + 1 == adder.runs.size() && open_right;
        const size_t slot = 2 * (begin / grain) + last;
        if (first || last) {
          part[slot] = {adder.runs[r].key, adder.terms[r].value()};
          used[slot] = true;
        } else {
          bucket_[adder.runs[r].key] = adder.terms[r].value();
        }
      }
    });
    std::vector<Part> open;
    for (size_t i = 0; i < part.size(); i++)
      if (used[i]) open.push_back(part[i]);
    return open;
  }

  const Windows<Fr>& windows_;
  const int first_, last_;
  const Affine<F>* bases_;
  const Limbs<Fr::N>* scalars_;
  const Active& active_;
  const Job& job_;
  std::vector<size_t> bucket_at_, start_;
  std::vector<std::uint32_t> entry_;
  std::vector<Affine<F>> bucket_;
};

template <class F, class Fr>
Xyzz<F> msm_part(const Affine<F>* bases, const Limbs<Fr::N>* scalars, size_t n, const Job& job) {
  constexpr size_t few = 12;  // below this, doubling and adding is cheaper
  // bytes that a group of windows may take: so many that its overhead vanishes; more where that keeps every thread busy
  constexpr size_t room = 3 << 20, most_room = 64 << 20;
  constexpr int max_width = 16;
  const Active active = find_active<F, Fr>(bases, scalars, n, job);
  if (active.index.size() < few) {
    std::vector<Affine<F>> p;
    std::vector<Limbs<Fr::N>> k;
    for (const auto i : active.index) p.push_back(bases[i]), k.push_back(scalars[i]);
    return msm_small(p.data(), k.data(), p.size());
  }
  const Windows<Fr> windows(Windows<Fr>::best_count(active.wide, 7, 12, max_width));
  const size_t window_bytes = 8 * active.index.size() + (8 + sizeof(Affine<F>)) * windows.buckets(0);
  const size_t busy = std::min<size_t>(job.threads, most_room / window_bytes);
  const int group = static_cast<int>(std::clamp<size_t>(std::max(room / window_bytes, busy), 1, windows.count));
  std::vector<Xyzz<F>> sums(windows.count, Xyzz<F>::infinity());
  const int used = active.wide ? windows.count : 1;
  for (int w = 0; w < used; w += group) {
    const int last = std::min(used, w + group);
    WindowGroup<F, Fr>(windows, w, last, bases, scalars, active, job).sum(sums.data());
  }
  Xyzz<F> total = Xyzz<F>::infinity();
  for (int w = windows.count - 1; w >= 0; w--) {
    for (int i = 0; i < windows.width(w); i++) total = total.doubled();
    total.add(sums[w]);
  }
  return total;
}

template <class G, class Fr>
void msm(const word* bases, const word* scalars, size_t n, word* out, const Job& job) {
  using F = typename G::F;
  constexpr size_t part = size_t(1) << 21;  // bounds the memory of the sorted lists, and their indices
  const auto* p = rows<Affine<F>>(bases);
  const auto* k = rows<Limbs<Fr::N>>(scalars);
  Xyzz<F> total = Xyzz<F>::infinity();
  for (size_t i = 0; i < n; i += part) total.add(msm_part<F, Fr>(p + i, k + i, std::min(part, n - i), job));
  *rows<Affine<F>>(out) = total.to_affine();
}

}  // namespace pinzk::cpu

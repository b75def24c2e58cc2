// SPDX-License-Identifier: Apache-2.0
// parallel_for: a range cut into chunks, taken by short-lived threads; stops early on Ctrl-C or on an exception.
//
// The calling thread works too, and between chunks it polls (at most every 20 ms) for a pending Python signal. Threads live
// only as long as the call: nothing to shut down, nothing to lose in a fork.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pinzk::cpu {

using std::size_t;

// thrown on the calling thread when `poll` asked to stop
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// How a call may run: number of threads (>= 1), and a callback that returns true to stop (may be null).
struct Job {
  int threads = 1;
  bool (*poll)() = nullptr;
};

// Calls body(begin, end, worker) for chunks of at most `grain` that cover [0, n); worker < job.threads names the thread.
// The first exception of any worker is rethrown here after all have stopped.
template <class Body>
void parallel_for(size_t n, size_t grain, const Job& job, Body body) {
  if (n == 0) return;
  grain = std::max<size_t>(grain, 1);
  const size_t chunks = (n + grain - 1) / grain;
  const int threads = static_cast<int>(std::min<size_t>(std::max(job.threads, 1), chunks));
  std::atomic<size_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr error;
  std::mutex error_mutex;
  auto fail = [&](std::exception_ptr e) {
    std::lock_guard<std::mutex> lock(error_mutex);
    if (!error) error = e;
    stop.store(true, std::memory_order_relaxed);
  };
  auto work = [&](int worker) noexcept {
    using clock = std::chrono::steady_clock;
    auto polled = clock::now();
    try {
      while (!stop.load(std::memory_order_relaxed)) {
        const size_t chunk = next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= chunks) break;
        body(chunk * grain, std::min(n, (chunk + 1) * grain), worker);
        if (worker == 0 && job.poll && clock::now() - polled > std::chrono::milliseconds(20)) {
          if (job.poll()) throw Interrupted();
          polled = clock::now();
        }
      }
    } catch (...) {
      fail(std::current_exception());
    }
  };
  std::vector<std::thread> pool;
  try {
    for (int t = 1; t < threads; t++) pool.emplace_back(work, t);
  } catch (...) {
    // no more threads to be had: the ones that started, and this one, do the work
  }
  work(0);
  // a long chunk of another worker must not keep Ctrl-C waiting forever: chunks are sized in milliseconds by the callers
  for (auto& t : pool) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace pinzk::cpu

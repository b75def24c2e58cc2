// SPDX-License-Identifier: Apache-2.0
// Budget: how many bytes may be held, who holds them by tag, and whose turn it is to wait for more.
//
// Waiting is by turns: a request that does not fit queues, and only the head of the queue tries again, each time
// something may have changed (bytes given back, a block of a pool idle). Nobody can be overtaken for ever, and no
// change can be missed: the head tries again whenever `changes` differs from what it saw before its last try.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "locks.hpp"

namespace pinzk::memory {

using std::size_t;

struct Tag {
  std::string name;
  size_t bytes = 0, peak = 0;
};

// One waiting request; linked into the queue of its budget between enter() and leave().
struct Turn {
  std::condition_variable wake;
  uint64_t seen = 0;
  Turn* next = nullptr;
  bool queued = false;
};

class Budget {
 public:
  explicit Budget(size_t total) : total_(total) {}

  size_t total() const { return total_; }

  // The record of a name; lives as long as the budget.
  Tag* tag(const std::string& name) {
    return locked(mutex_, [&] {
      auto [it, fresh] = tags_.try_emplace(name);
      if (fresh) it->second.name = name;
      return &it->second;
    });
  }

  // True if n more bytes fit; they are then held under the tag. Does not look at the queue.
  bool take(size_t n, Tag* tag) {
    return locked(mutex_, [&] {
      if (n > total_ - used_) return false;
      used_ += n;
      tag->bytes += n;
      if (used_ > peak_) peak_ = used_;
      if (tag->bytes > tag->peak) tag->peak = tag->bytes;
      return true;
    });
  }

  void give(size_t n, Tag* tag) {
    if (n == 0) return;
    locked(mutex_, [&] {
      used_ -= n;
      tag->bytes -= n;
      changed();
    });
  }

  // Moves n bytes from one tag to another.
  void retag(size_t n, Tag* from, Tag* to) {
    locked(mutex_, [&] {
      from->bytes -= n;
      to->bytes += n;
      if (to->bytes > to->peak) to->peak = to->bytes;
    });
  }

  // Bytes by which a request of n does not fit now.
  size_t missing(size_t n) {
    return locked(mutex_, [&] { return n > total_ - used_ ? n - (total_ - used_) : size_t(0); });
  }

  // ---- turns ----

  // Sequentially consistent with the locks of pools: whoever makes a block idle and then sees no waiter here did so
  // before the waiter's first look at the pool.
  bool waiting() const { return waiters_.load() != 0; }

  // Something that a waiting request may use has become available.
  void poke() {
    if (waiting()) locked(mutex_, [&] { changed(); });
  }

  void enter(Turn* turn) {
    locked(mutex_, [&] {
      turn->seen = changes_ - 1;  // so that the first wait_turn() lets a head try at once
      turn->queued = true;
      (head_ ? tail_->next : head_) = turn;
      tail_ = turn;
      waits_++;
      waiters_++;
    });
  }

  void leave(Turn* turn) {
    locked(mutex_, [&] {
      if (!turn->queued) return;
      turn->queued = false;
      Turn* before = nullptr;
      for (Turn* t = head_; t != turn; t = t->next) before = t;
      (before ? before->next : head_) = turn->next;
      if (tail_ == turn) tail_ = before;
      waiters_--;
      changed();  // the next in line takes its turn
    });
  }

  // Waits at most `milliseconds`; true if the turn is the head's and something changed since it last returned true.
  // Called without the GIL.
  bool wait_turn(Turn* turn, int64_t milliseconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    const bool mine = turn->wake.wait_for(lock, std::chrono::milliseconds(milliseconds),
                                          [&] { return head_ == turn && turn->seen != changes_; });
    if (mine) turn->seen = changes_;
    return mine;
  }

  // ---- figures ----

  struct Figures {
    size_t total = 0, used = 0, peak = 0, waiters = 0, waits = 0;
    std::vector<std::pair<std::string, size_t>> by_tag;
  };

  Figures figures() {
    WithoutGil nogil;
    std::lock_guard<std::mutex> lock(mutex_);
    Figures f;
    f.total = total_, f.used = used_, f.peak = peak_, f.waiters = waiters_, f.waits = waits_;
    for (auto& [name, tag] : tags_) {
      if (tag.bytes) f.by_tag.emplace_back(name, tag.bytes);
    }
    return f;
  }

 private:
  void changed() {
    changes_++;
    if (head_) head_->wake.notify_one();
  }

  const size_t total_;
  std::mutex mutex_;
  size_t used_ = 0, peak_ = 0, waits_ = 0;
  std::map<std::string, Tag> tags_;
  Turn *head_ = nullptr, *tail_ = nullptr;
  uint64_t changes_ = 1;
  std::atomic<size_t> waiters_{0};
};

}  // namespace pinzk::memory

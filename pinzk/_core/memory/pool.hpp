// SPDX-License-Identifier: Apache-2.0
// Pool: the states of blocks, the counters, and the one native thread that polls events, wipes and frees.
//
//   OUT --give()--> PENDING --every use seen complete by the host--> DIRTY --wiped--> FREE --take()--> OUT
//                      \--a use that cannot be followed--> QUARANTINED (counted, never reused, never freed)
//
// Every method may be called from any thread. Those marked [slow] make driver calls or write memory: the caller drops the
// GIL first. A pool is alive as long as its Python object, a block of it or its thread is.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "blocks.hpp"
#include "budget.hpp"
#include "locks.hpp"
#include "shared.hpp"

namespace pinzk::memory {

class Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(std::shared_ptr<Budget> budget, const Driver& driver, bool wipe, Shared* shared)
      : budget_(std::move(budget)), driver_(driver), wipe_(wipe), shared_(*shared) {}

  Shared& shared() { return shared_; }

  Budget& budget() { return *budget_; }
  const Driver& driver() const { return driver_; }
  bool wipes() const { return wipe_; }

  // ---- hot path ----

  // An idle block that fits, now OUT, or null. One that is still dirty is wiped here, by the thread that takes it.
  Block* take(size_t n, int node) {
    Block* b = locked(mutex_, [&] { return find(n, node); });
    if (b && wipe_ && b->dirty) wipe(b);
    return b;
  }

  // [slow] As take(), after a look at the events of pending blocks, and after the thread if it is wiping a fitting one.
  Block* take_after_drain(size_t n, int node) {
    drain();
    std::unique_lock<std::mutex> lock(mutex_);
    Block* b;
    while (!(b = find(n, node)) && being_wiped(n, node)) wait_changed(lock, 10);
    lock.unlock();
    if (b && wipe_ && b->dirty) wipe(b);
    return b;
  }

  // The owner lets go. Never blocks, never wipes, makes no driver call, cannot fail. `quietly`: whoever took it just now
  // puts it back, and nothing has changed for those who wait (itself among them).
  void give(Block* b, bool quietly = false) {
    bool wake = false;
    locked(mutex_, [&] {
      out_.remove(b);
      if (retire(b)) {
        wake = asleep_;
        nudge();
      }
      if (watchers_) changed_.notify_all();
    });
    if (wake) wake_.notify_one();
    if (!quietly) budget_->poke();
  }

  // ---- chunks ----

  // A new chunk joins, all blocks FREE but the first, which is OUT where `out` says so. Takes ownership; returns the first.
  Block* adopt(Chunk* c, bool out) {
    const bool start = locked(mutex_, [&] {
      chunks_.insert(c);
      total_ += c->nbytes;
      peak_ = std::max(peak_, total_);
      allocations_++;
      for (auto& b : c->blocks) {
        bytes_[int(State::free)] += b.nbytes;
        c->idle++;
        b.since = ++clock_;
        if (out && &b == &c->blocks[0]) {
          set(&b, State::out);
          out_.push(&b);
        } else {
          free_.put(&b);
        }
      }
      const bool first = !started_;
      started_ = true;
      return first;
    });
    if (start && !shared_.workers.start(shared_from_this())) locked(mutex_, [&] { started_ = false; });
    return &c->blocks[0];
  }

  // [slow] The user's memory is done with: unregistered now if nothing uses it, else by the thread once that is so.
  // Returns the object to let go of, or null.
  void* give_user(Block* b) {
    poll(b);
    Chunk* gone = nullptr;
    bool later = false;
    locked(mutex_, [&] {
      if (b->tainted || !b->uses.empty()) {
        later = true;
        return;
      }
      out_.remove(b);
      gone = b->chunk;
      detach(gone);
    });
    if (later) give(b);
    return gone ? destroy(gone) : nullptr;
  }

  // [slow] Frees FREE chunks, oldest first, until `want` bytes are gone or, if `keep` is larger, idle bytes are at most
  // `keep`. Completes and wipes first what can be. Returns the bytes freed.
  size_t trim(size_t want, size_t keep) {
    drain();
    wipe_all();
    std::vector<Chunk*> idle, gone;
    locked(mutex_, [&] {
      for (Chunk* c : chunks_) {
        if (c->idle == c->blocks.size()) idle.push_back(c);  // never one of the user's
      }
      std::sort(idle.begin(), idle.end(), [](Chunk* x, Chunk* y) { return age(x) < age(y); });
      size_t freed = 0;
      for (Chunk* c : idle) {
        if (freed >= want || bytes_[int(State::free)] <= keep) break;
        freed += c->nbytes;
        for (auto& b : c->blocks) free_.remove(&b);
        detach(c);
        gone.push_back(c);
      }
      free_.forget_empty();
    });
    size_t freed = 0;
    for (Chunk* c : gone) {
      const size_t n = c->nbytes;
      if (destroy_ok(c)) freed += n;
    }
    return freed;
  }

  // Bytes that trim() could free at once.
  size_t idle_bytes() {
    return locked(mutex_, [&] {
      size_t n = 0;
      for (Chunk* c : chunks_) {
        if (c->idle == c->blocks.size()) n += c->nbytes;
      }
      return n + bytes_[int(State::dirty)];
    });
  }

  // ---- uses by the device ----

  // Finished uses are forgotten when a block has gathered this many.
  static constexpr size_t kManyUses = 8;

  bool many_uses(Block* b) {
    return locked(mutex_, [&] { return b->uses.size() >= kManyUses; });
  }

  // Before the event is recorded, so that a release meanwhile cannot miss it. Returns the name of the use.
  uint64_t begin_use(Block* b, void* event, uint64_t context_id, bool writes) {
    return locked(mutex_, [&] {
      b->uses.push_back({event, context_id, ++serial_, false, writes});
      return serial_;
    });
  }

  // After the event was recorded, or could not be: then nobody knows when the use ends.
  void end_use(Block* b, uint64_t serial, bool recorded) {
    locked(mutex_, [&] {
      for (size_t i = 0; i < b->uses.size(); i++) {
        if (b->uses[i].serial != serial) continue;
        b->uses[i].recorded = recorded;
        if (!recorded) {
          b->uses.erase(b->uses.begin() + i);
          b->tainted = true;
        }
        break;
      }
    });
  }

  void taint(Block* b) {
    locked(mutex_, [&] { b->tainted = true; });
  }

  // What is known without asking the driver: false means that no use is left.
  bool maybe_used(Block* b) {
    return locked(mutex_, [&] { return b->tainted || !b->uses.empty(); });
  }

  // The end of a use can never be known.
  bool tainted(Block* b) {
    return locked(mutex_, [&] { return b->tainted; });
  }

  // [slow] True if the device may still use the block; with `writes_only`, still write it.
  bool in_flight(Block* b, bool writes_only) {
    poll(b);
    return locked(mutex_, [&] {
      if (b->tainted) return true;
      return std::any_of(b->uses.begin(), b->uses.end(), [&](const Use& u) { return u.writes || !writes_only; });
    });
  }

  // ---- waiting and ending ----

  // [slow] Does the thread's work once, here.
  void tidy() {
    drain();
    wipe_all();
    if (closing_.load()) {
      trim(SIZE_MAX, 0);
      locked(mutex_, [&] { strand(); });
    }
    for (;;) {
      Chunk* c = nullptr;
      locked(mutex_, [&] {
        if (Block* b = retired_.first()) {
          retired_.remove(b);
          c = b->chunk;
          detach(c);
        }
      });
      if (!c) break;
      if (void* keep = destroy(c)) drop_later(keep);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  bool settled() {
    return locked(mutex_, [&] { return bytes_[int(State::pending)] + bytes_[int(State::dirty)] == 0; });
  }

  // After close(): nothing that could be freed is left.
  bool emptied() { return idle_bytes() == 0; }

  bool ended() {
    return locked(mutex_, [&] { return !started_; });
  }

  // [slow] Waits for a change, at most that long.
  void wait(int64_t milliseconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    wait_changed(lock, milliseconds);
  }

  // No more blocks are handed out; what is idle, and what comes home later, is freed by the thread.
  void close() {
    closing_ = true;
    locked(mutex_, [&] { nudge(); });
    wake_.notify_one();
  }

  void stop() {
    stop_ = true;
    locked(mutex_, [&] { nudge(); });
    wake_.notify_one();
  }

  // Without the GIL, on the thread of the pool.
  void run() {
    using namespace std::chrono;
    uint64_t seen = 0;
    auto active = steady_clock::now();
    for (;;) {
      tidy();
      std::unique_lock<std::mutex> lock(mutex_);
      if (stop_ || (closing_ && total_ == bytes_[int(State::quarantined)])) break;
      if (nudged_) {
        nudged_ = false;
        continue;
      }
      const auto now = steady_clock::now();
      if (clock_ != seen) seen = clock_, active = now;
      // Waking a sleeper costs the releasing thread a system call: while blocks come and go the thread looks by itself.
      if (bytes_[int(State::pending)]) {
        wake_.wait_for(lock, microseconds(200));
      } else if (wipe_ && now - active < seconds(1)) {
        wake_.wait_for(lock, milliseconds(2));
      } else {
        asleep_ = true;
        wake_.wait(lock, [&] { return !asleep_; });
      }
    }
    std::lock_guard<std::mutex> lock(mutex_);
    started_ = false;
    changed_.notify_all();
  }

  // ---- figures ----

  struct Figures {
    size_t total = 0, peak = 0, allocations = 0, reuses = 0, freed = 0, wiped = 0;
    std::array<size_t, kStates> bytes{};
    std::array<size_t, 3> by_kind{};
  };

  Figures figures() {
    WithoutGil nogil;
    std::lock_guard<std::mutex> lock(mutex_);
    Figures f;
    f.total = total_, f.peak = peak_, f.allocations = allocations_, f.reuses = reuses_, f.freed = freed_, f.wiped = wiped_;
    f.bytes = bytes_;
    for (Chunk* c : chunks_) f.by_kind[int(c->kind)] += c->nbytes;
    return f;
  }

  struct Outstanding {
    uintptr_t ptr;
    size_t nbytes;
    int kind;
    bool used;
  };

  std::vector<Outstanding> outstanding() {
    WithoutGil nogil;
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Outstanding> all;
    for (Block* b = out_.first(); b; b = b->next) {
      all.push_back({reinterpret_cast<uintptr_t>(b->ptr), b->nbytes, int(b->chunk->kind), !b->uses.empty()});
    }
    return all;
  }

 private:
  // ---- under the mutex ----

  // The thread looks again before it sleeps; whoever sees it asleep wakes it as well.
  void nudge() {
    nudged_ = true;
    asleep_ = false;
  }

  void set(Block* b, State to) {
    bytes_[int(b->state)] -= b->nbytes;
    bytes_[int(to)] += b->nbytes;
    if (b->state == State::free) b->chunk->idle--;
    if (to == State::free) b->chunk->idle++;
    b->state = to;
  }

  Block* find(size_t n, int node) {
    Block* b = free_.take(node, n);
    if (!b && wipe_) b = dirty_.take(node, n);
    if (!b) return nullptr;
    set(b, State::out);
    out_.push(b);
    reuses_++;
    return b;
  }

  // Where a block without owner belongs; true if the thread has something to do for it.
  bool retire(Block* b) {
    b->since = ++clock_;
    if (b->tainted) {
      set(b, State::quarantined);
      return false;
    }
    if (!b->uses.empty()) {
      set(b, State::pending);
      pending_.push(b);
      return true;
    }
    if (b->chunk->origin == Origin::user) {
      set(b, State::pending);
      retired_.push(b);
      return true;
    }
    if (wipe_ && b->dirty) {
      set(b, State::dirty);
      dirty_.put(b);
      return true;
    }
    set(b, State::free);
    free_.put(b);
    return closing_;
  }

  // The chunk leaves the pool's books; its reservation stays with it.
  void detach(Chunk* c) {
    for (auto& b : c->blocks) bytes_[int(b.state)] -= b.nbytes;
    total_ -= c->nbytes;
    chunks_.erase(c);
  }

  // Slots beside a quarantined one can never be freed.
  void strand() {
    for (Chunk* c : chunks_) {
      const auto count = [&](State s) {
        return size_t(std::count_if(c->blocks.begin(), c->blocks.end(), [&](const Block& b) { return b.state == s; }));
      };
      const size_t lost = count(State::quarantined);
      if (!lost || !c->idle || lost + c->idle != c->blocks.size()) continue;
      for (auto& b : c->blocks) {
        if (b.state != State::free) continue;
        free_.remove(&b);
        set(&b, State::quarantined);
      }
    }
  }

  bool being_wiped(size_t n, int node) const {
    for (Block* b = wiping_.first(); b; b = b->next) {
      if (b->chunk->node == node && b->nbytes >= n && b->nbytes <= largest_fit(n)) return true;
    }
    return false;
  }

  static uint64_t age(const Chunk* c) {
    uint64_t newest = 0;
    for (auto& b : c->blocks) newest = std::max(newest, b.since);
    return newest;
  }

  void wait_changed(std::unique_lock<std::mutex>& lock, int64_t milliseconds) {
    watchers_++;
    changed_.wait_for(lock, std::chrono::milliseconds(milliseconds));
    watchers_--;
  }

  // ---- without it ----

  void wipe(Block* b) {
    WithoutGil nogil;
    std::memset(b->ptr, 0, b->dirty);
    b->dirty = 0;
  }

  void wipe_all() {
    constexpr size_t kSlice = size_t(8) << 20;  // between two looks at stop_
    for (;;) {
      Block* b = locked(mutex_, [&] {
        Block* d = dirty_.take_any();
        if (d) wiping_.push(d);
        return d;
      });
      if (!b) return;
      const size_t n = b->dirty;
      while (b->dirty && !stop_) {  // from the end, so that `dirty` stays true at every step
        const size_t slice = std::min(b->dirty, kSlice);
        std::memset(b->ptr + b->dirty - slice, 0, slice);
        b->dirty -= slice;
      }
      locked(mutex_, [&] {
        wiping_.remove(b);
        wiped_ += n - b->dirty;
        retire(b);
        changed_.notify_all();
      });
      budget_->poke();
      if (stop_) return;
    }
  }

  void drain() {
    std::lock_guard<std::mutex> one_at_a_time(drain_mutex_);
    std::vector<Block*> blocks;
    locked(mutex_, [&] {
      for (Block* b = pending_.first(); b; b = b->next) blocks.push_back(b);
    });
    bool moved = false;
    for (Block* b : blocks) {
      poll(b);
      moved |= locked(mutex_, [&] {
        if (!b->tainted && !b->uses.empty()) return false;
        pending_.remove(b);
        retire(b);
        changed_.notify_all();
        return true;
      });
    }
    if (moved) budget_->poke();
  }

  // Asks the driver about the recorded uses of a block and forgets the finished ones.
  void poll(Block* b) {
    std::vector<Use> uses;
    locked(mutex_, [&] { uses = b->uses; });
    for (const Use& u : uses) {
      if (!u.recorded) continue;
      const int code = driver_.event_query(u.event);
      if (code == kNotReady) continue;
      const bool mine = locked(mutex_, [&] {
        for (size_t i = 0; i < b->uses.size(); i++) {
          if (b->uses[i].serial != u.serial) continue;
          b->uses.erase(b->uses.begin() + i);
          if (code != kSuccess) b->tainted = true;
          return true;
        }
        return false;  // another thread was faster, and the event may be someone else's by now
      });
      if (mine && code == kSuccess) shared_.events.put(u.event, u.context_id);
    }
  }

  // Returns true, and the budget's bytes, if the memory is gone; else it is quarantined.
  bool destroy_ok(Chunk* c, void** keep = nullptr) {
    const int code = free_memory(*c, driver_);
    if (code != kSuccess && code != kDeinitialized) {
      locked(mutex_, [&] {
        chunks_.insert(c);
        total_ += c->nbytes;
        for (auto& b : c->blocks) {
          b.state = State::quarantined;
          bytes_[int(State::quarantined)] += b.nbytes;
        }
        c->idle = 0;
      });
      return false;
    }
    locked(mutex_, [&] { freed_++; });
    budget_->give(c->nbytes, c->tag);
    if (keep) *keep = c->keep;
    delete c;
    return true;
  }

  void* destroy(Chunk* c) {
    void* keep = nullptr;
    destroy_ok(c, &keep);
    return keep;
  }

  // On the native thread: the interpreter lets go of the object when it gets to it.
  static void drop_later(void* object) {
    auto drop = [](void* o) {
      Py_DECREF(static_cast<PyObject*>(o));
      return 0;
    };
    for (int tries = 0; tries < 100 && Py_AddPendingCall(drop, object) != 0; tries++) {  // the queue is full
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const std::shared_ptr<Budget> budget_;
  const Driver driver_;
  const bool wipe_;
  Shared& shared_;
  std::atomic<bool> closing_{false}, stop_{false};

  std::mutex mutex_, drain_mutex_;
  std::condition_variable wake_, changed_;
  Shelf free_, dirty_;
  BlockList out_, pending_, wiping_, retired_;
  std::unordered_set<Chunk*> chunks_;
  std::array<size_t, kStates> bytes_{};
  size_t total_ = 0, peak_ = 0, allocations_ = 0, reuses_ = 0, freed_ = 0, wiped_ = 0, watchers_ = 0;
  uint64_t clock_ = 0, serial_ = 0;
  bool asleep_ = false, nudged_ = false, started_ = false;
};

// ---- threads ----

inline bool Workers::start(std::shared_ptr<Pool> pool) {
  reap();
  std::lock_guard<std::mutex> lock(mutex_);
  if (exiting_) return false;
  try {
    workers_.emplace_back();
    Worker& w = workers_.back();
    w.pool = pool;
    w.thread = std::thread([pool = std::move(pool), &w]() mutable {
      pool->run();
      pool.reset();
      w.ended = true;
    });
    return true;
  } catch (...) {  // no thread to be had: checkouts and trims do its work
    workers_.pop_back();
    return false;
  }
}

inline void Workers::reap() {
  std::list<Worker> ended;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = workers_.begin(); it != workers_.end();) {
      auto next = std::next(it);
      if (it->ended) ended.splice(ended.end(), workers_, it);
      it = next;
    }
  }
  for (auto& w : ended) w.thread.join();
}

inline void Workers::stop_all() {
  exiting_ = true;
  std::list<Worker> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    all.swap(workers_);
  }
  for (auto& w : all) {
    if (auto pool = w.pool.lock()) pool->stop();
  }
  for (auto& w : all) w.thread.join();
}

}  // namespace pinzk::memory

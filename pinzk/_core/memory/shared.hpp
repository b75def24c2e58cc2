// SPDX-License-Identifier: Apache-2.0
// What all pools of a process share: events by context, the threads, the gate of allocations.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "blocks.hpp"
#include "locks.hpp"

namespace pinzk::memory {

// Events kept for reuse, one shelf per context: an event is valid only in the context that made it.
class EventPool {
 public:
  // [slow] An event of the context, or null and the driver's code.
  void* get(const Driver& driver, void* context, uint64_t context_id, int* code) {
    void* event = locked(mutex_, [&]() -> void* {
      auto& idle = idle_[context_id];
      if (idle.empty()) return nullptr;
      void* e = idle.back();
      idle.pop_back();
      return e;
    });
    *code = event ? kSuccess : driver.event_create(context, &event);
    return *code == kSuccess ? event : nullptr;
  }

  void put(void* event, uint64_t context_id) {
    locked(mutex_, [&] { idle_[context_id].push_back(event); });
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<void*>> idle_;
};

class Pool;

// The threads of all pools, so that they are joined before the interpreter goes.
class Workers {
 public:
  bool start(std::shared_ptr<Pool> pool);
  // [slow] Joins the threads that have ended.
  void reap();
  // [slow] Stops and joins all; afterwards pools leak on purpose.
  void stop_all();
  bool exiting() const { return exiting_.load(); }

 private:
  struct Worker {
    std::thread thread;
    std::weak_ptr<Pool> pool;
    std::atomic<bool> ended{false};
  };
  std::mutex mutex_;
  std::list<Worker> workers_;
  std::atomic<bool> exiting_{false};
};

// At most this many allocations at once: the driver serialises them anyway, and stalls the device meanwhile.
class Gate {
 public:
  void enter() {
    std::unique_lock<std::mutex> lock(mutex_);
    open_.wait(lock, [&] { return inside_ < 2; });
    inside_++;
  }
  void leave() {
    std::lock_guard<std::mutex> lock(mutex_);
    inside_--;
    open_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable open_;
  int inside_ = 0;
};

// What all pools of the process share. Made once, in the module of the pool (each extension module has statics of its own),
// and never destroyed: no driver call after the interpreter is gone.
struct Shared {
  EventPool events;
  Workers workers;
  Gate gate;
};

}  // namespace pinzk::memory

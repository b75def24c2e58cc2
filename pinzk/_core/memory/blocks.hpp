// SPDX-License-Identifier: Apache-2.0
// Chunk: what is page-locked, at once and as a whole. Block: what has an owner, a slice of one chunk. Shelf: idle blocks.
//
//   chunk (one reservation of the budget)      large: one block        slab: equal slots, for small requests
//   +---------------------------------+        +----------------+      +------+------+------+------+
//   | base ... base + nbytes          |        | block          |      | slot | slot | slot | slot |
//   +---------------------------------+        +----------------+      +------+------+------+------+
//
// Bytes [dirty, nbytes) of a block are zero, always; `dirty` is how far an owner may have written.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "budget.hpp"
#include "pages.hpp"

namespace pinzk::memory {

enum class Kind : uint8_t { pinned, registered, pageable };
enum class State : uint8_t { free, out, pending, dirty, quarantined };
constexpr int kStates = 5;

// Status codes of the driver that this layer tells apart; kNoMemory is ours.
constexpr int kSuccess = 0, kDeinitialized = 4, kNotReady = 600, kNoMemory = -1;

// The driver's calls, put in by the Cython module: this header knows no CUDA.
struct Driver {
  int (*host_alloc)(void* context, void** pointer, size_t nbytes);
  int (*host_free)(void* context, void* pointer);
  int (*host_register)(void* context, void* pointer, size_t nbytes);
  int (*host_unregister)(void* context, void* pointer);
  int (*event_create)(void* context, void** event);
  int (*event_destroy)(void* event);
  int (*event_record)(void* event, void* stream);
  int (*event_query)(void* event);
};

// A use of a block by the device. Until `recorded`, the event says nothing and the use counts as unfinished.
struct Use {
  void* event;
  uint64_t context_id;
  uint64_t serial;  // names the use: events are reused
  bool recorded, writes;
};

struct Chunk;

struct Block {
  Chunk* chunk = nullptr;
  char* ptr = nullptr;
  size_t nbytes = 0, dirty = 0;
  State state = State::free;
  bool tainted = false;                    // a use could not be followed: never reused, never freed
  uint64_t since = 0;                      // when it became idle, by the pool's clock
  std::vector<Use> uses;                   // under the pool's mutex
  Block *next = nullptr, *prev = nullptr;  // on a shelf or list, under the pool's mutex
};

// ---- sizes ----

constexpr size_t kSlab = size_t(1) << 20, kSmallest = 256, kLargestSlot = size_t(1) << 17, kExact = size_t(1) << 30;

// Size of the slab slot that serves a small request; 0 for a large one.
inline size_t slot_size(size_t n) {
  if (n > kLargestSlot) return 0;
  size_t slot = kSmallest;
  while (slot < n) slot *= 2;
  return slot;
}

// Size of a block of its own: eight steps per power of two, at most an eighth wasted; whole pages above kExact.
// n <= SIZE_MAX / 2.
inline size_t class_size(size_t n) {
  if (n > kExact) return round_up(n, kPage);
  size_t half = kPage;
  while (2 * half < n) half *= 2;
  return round_up(n, std::max(half / 8, kPage));
}

// The largest block that may serve a request of n.
inline size_t largest_fit(size_t n) { return std::max({n + n / 8, round_up(n, kPage), slot_size(n)}); }

// ---- shelves ----

// Doubly linked list of blocks, no allocation.
class BlockList {
 public:
  bool empty() const { return !first_; }
  Block* first() const { return first_; }
  Block* last() const { return last_; }
  void push(Block* b) {
    b->next = nullptr;
    b->prev = last_;
    (last_ ? last_->next : first_) = b;
    last_ = b;
  }
  void remove(Block* b) {
    (b->prev ? b->prev->next : first_) = b->next;
    (b->next ? b->next->prev : last_) = b->prev;
    b->next = b->prev = nullptr;
  }

 private:
  Block *first_ = nullptr, *last_ = nullptr;
};

// ---- chunks ----

enum class Origin : uint8_t { pages, registered_pages, host_alloc, user };

struct Segment {
  char* base;
  size_t nbytes;
};

struct Chunk {
  char* base = nullptr;
  size_t nbytes = 0;
  Kind kind = Kind::pageable;
  Origin origin = Origin::pages;
  int node = -1;
  bool bound = true;  // false if the node was asked for and refused
  void* context = nullptr;
  Tag* tag = nullptr;               // the reservation: nbytes under this tag, given back when the chunk is gone
  void* keep = nullptr;             // the user's object behind registered memory, a reference
  std::vector<Segment> registered;  // of registered memory, in order
  std::vector<Block> blocks;        // never resized after the chunk joined a pool
  size_t idle = 0;                  // blocks that are FREE
};

// Memory for a chunk whose nbytes and node are set; on failure nothing is left behind and the driver's code is returned.
inline int allocate_pageable(Chunk& c) {
  c.nbytes = round_up(c.nbytes, kPage);
  c.base = map_pages(c.nbytes, c.node, &c.bound);
  c.kind = Kind::pageable;
  c.origin = Origin::pages;
  return c.base ? kSuccess : kNoMemory;
}

// As above, page-locked. Huge pages are mapped, touched and registered; smaller chunks, and what the system will not
// register, come from cuMemHostAlloc.
inline int allocate_pinned(Chunk& c, const Driver& driver, int threads) {
  c.kind = Kind::pinned;
  if (c.nbytes >= kHugePage || c.node >= 0) {
    c.base = map_pages(c.nbytes, c.node, &c.bound);
    if (!c.base) return kNoMemory;
    touch_pages(c.base, c.nbytes, threads);
    c.origin = Origin::registered_pages;
    if (driver.host_register(c.context, c.base, c.nbytes) == kSuccess) return kSuccess;
    unmap_pages(c.base, c.nbytes);
  }
  void* p = nullptr;
  const int code = driver.host_alloc(c.context, &p, c.nbytes);
  if (code != kSuccess) return code;
  c.base = static_cast<char*>(p);
  c.origin = Origin::host_alloc;
  c.bound = c.node < 0;
  std::memset(c.base, 0, c.nbytes);  // the driver promises nothing about the contents
  return kSuccess;
}

// Page-locks the user's memory in segments of whole pages, so that no two share a page; undone in reverse on failure.
inline int register_user(Chunk& c, const Driver& driver, size_t segment) {
  c.kind = Kind::registered;
  c.origin = Origin::user;
  int code = kSuccess;
  for (size_t start = 0; start < c.nbytes && code == kSuccess;) {
    const auto address = reinterpret_cast<uintptr_t>(c.base) + start;
    const size_t to_boundary = round_up(address + 1, kPage) - address;
    const size_t want = c.nbytes - start <= segment ? c.nbytes - start : to_boundary + segment - kPage;
    code = driver.host_register(c.context, c.base + start, want);
    if (code == kSuccess) c.registered.push_back({c.base + start, want});
    start += want;
  }
  if (code == kSuccess) return code;
  while (!c.registered.empty()) {
    driver.host_unregister(c.context, c.registered.back().base);
    c.registered.pop_back();
  }
  return code;
}

// The user's memory as it is, not page-locked.
inline void adopt_user(Chunk& c) {
  c.kind = Kind::pageable;
  c.origin = Origin::user;
}

// Gives the memory back. Anything but success or kDeinitialized means that it may still be in use, and it stays.
inline int free_memory(Chunk& c, const Driver& driver) {
  int code = kSuccess;
  switch (c.origin) {
    case Origin::pages:
      break;
    case Origin::host_alloc:
      return driver.host_free(c.context, c.base);
    case Origin::registered_pages:
      code = driver.host_unregister(c.context, c.base);
      break;
    case Origin::user:
      while (code == kSuccess && !c.registered.empty()) {
        code = driver.host_unregister(c.context, c.registered.back().base);
        if (code == kSuccess) c.registered.pop_back();
      }
      return code;
  }
  if (code == kSuccess) unmap_pages(c.base, c.nbytes);
  return code;
}

// Cuts the chunk into blocks of `slot` bytes (the whole chunk when slot is 0).
inline void cut(Chunk& c, size_t slot) {
  const size_t size = slot ? slot : c.nbytes;
  c.blocks = std::vector<Block>(c.nbytes / size);
  for (size_t i = 0; i < c.blocks.size(); i++) {
    c.blocks[i].chunk = &c;
    c.blocks[i].ptr = c.base + i * size;
    c.blocks[i].nbytes = size;
  }
}

// Idle blocks by NUMA node and size: the best fit comes out, the one that went in last first.
class Shelf {
 public:
  void put(Block* b) { lists_[{b->chunk->node, b->nbytes}].push(b); }
  void remove(Block* b) { lists_[{b->chunk->node, b->nbytes}].remove(b); }

  Block* take(int node, size_t n) {
    const size_t limit = largest_fit(n);
    for (auto it = lists_.lower_bound({node, n}); it != lists_.end(); ++it) {
      if (it->first.first != node || it->first.second > limit) break;
      if (Block* b = it->second.last()) {
        it->second.remove(b);
        return b;
      }
    }
    return nullptr;
  }

  Block* take_any() {
    for (auto& [key, list] : lists_) {
      if (Block* b = list.first()) {
        list.remove(b);
        return b;
      }
    }
    return nullptr;
  }

  void forget_empty() {
    for (auto it = lists_.begin(); it != lists_.end();) it = it->second.empty() ? lists_.erase(it) : std::next(it);
  }

 private:
  std::map<std::pair<int, size_t>, BlockList> lists_;
};

}  // namespace pinzk::memory

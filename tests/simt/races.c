// SPDX-License-Identifier: Apache-2.0
// Races between threads: two accesses of which one writes, with nothing between them that orders them.
//
// g++ calls __tsan_* before each access (-fsanitize=thread); its own runtime is not linked, this file stands in for it. Of
// each four bytes the latest accesses are kept: epoch, thread, the thread's clock. What orders two accesses: a barrier of
// the block (a new epoch), a meeting of lanes (vector clocks inside a warp), a launch. Blocks of one launch are ordered by
// nothing, unless the writer's calls __threadfence after it and the reader's before (flags in between are taken on trust).
// Atomic operations and volatile accesses do not race with one another. Readers are kept two at a time, so that a race can
// be missed, none is invented.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "simt.h"

typedef uint64_t Stamp;  // epoch 32 bits, thread 10, clock 18, bytes 4; 0: none
typedef struct {
  Stamp writer, readers[2], atomic;
} Cell;
enum Kind { READ = SIMT_READ, WRITE = SIMT_WRITE, ATOMIC = SIMT_ATOMIC_ACCESS };

static Cell* cells;
static unsigned epoch = 1, launch_first = 1, block_first = 1;
static unsigned clocks[1024][32];  // of a thread: what it knows of the lanes of its warp
static struct {
  unsigned first, last;
} fenced[1 << 16];  // epochs of this launch's blocks that ended in a __threadfence
static unsigned fenced_n;

// ---- what orders ----

void simt_races_launch(void) {
  if (!cells)
    cells =
        mmap(0, SIMT_ARENA / 4 * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  launch_first = block_first = ++epoch;
  fenced_n = 0;
}
void simt_races_block(unsigned threads) {
  block_first = ++epoch;
  memset(clocks, 0, threads * sizeof *clocks);
  for (unsigned i = 0; i < threads; i++) clocks[i][i & 31] = 1;
}
void simt_races_barrier(void) { epoch++; }
void simt_races_meet(unsigned warp, unsigned mask) {
  unsigned known[32] = {0};
  for (int i = 0; i < 32; i++)
    for (int j = 0; (mask >> i & 1) && j < 32; j++)
      if (clocks[warp + i][j] > known[j]) known[j] = clocks[warp + i][j];
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) memcpy(clocks[warp + i], known, sizeof known), clocks[warp + i][i]++;
}
void simt_races_fence(void) {
  if (fenced_n && fenced[fenced_n - 1].first == block_first)
    fenced[fenced_n - 1].last = epoch;
  else if (fenced_n < sizeof fenced / sizeof *fenced)
    fenced[fenced_n].first = block_first, fenced[fenced_n++].last = epoch;
}
static int published(unsigned e) {  // and the running block may see it
  if (!fenced_n || fenced[fenced_n - 1].first != block_first) return 0;
  for (unsigned low = 0, high = fenced_n; low < high;) {
    const unsigned i = (low + high) / 2;
    if (e < fenced[i].first)
      high = i;
    else if (e > fenced[i].last)
      low = i + 1;
    else
      return 1;
  }
  return 0;
}
void simt_forget_accesses(const void* from, size_t nbytes) {
  if (cells) madvise(cells + simt_offset(from) / 4, nbytes / 4 * sizeof(Cell), MADV_DONTNEED);
}

// ---- accesses ----

static int unordered(Stamp s, unsigned mask, int shared) {
  if (!(s & mask)) return 0;
  const unsigned e = s >> 32, thread = s >> 22 & 1023, clock = s >> 4 & 0x3ffff;
  if (e < launch_first || e > epoch) return 0;
  if (e < block_first) return !shared && !published(e);
  if (e < epoch || thread == simt_thread) return 0;
  return thread / 32 != simt_thread / 32 || clocks[simt_thread][thread & 31] < clock;
}

static void report(const char* address, enum Kind kind, Stamp other, const char* others, void* pc) {
  static const char* verbs[] = {"reads", "writes", "updates"};
  char text[512], which[32] = "another block";
  if (other >> 32 >= block_first) snprintf(which, sizeof which, "thread %u", (unsigned)(other >> 22 & 1023));
  snprintf(text, sizeof text, "a race: %s %s, which %s %s", verbs[kind], simt_describe(address), which, others);
  simt_fail_at(text, pc);
}

static inline void touch(const void* address, size_t nbytes, enum Kind kind, void* pc) {
  const size_t offset = simt_offset(address);
  if (offset >= SIMT_ARENA || simt_thread >= 1024) return;
  const int shared = offset < SIMT_SHARED;
  const Stamp me =
      (Stamp)epoch << 32 | (Stamp)simt_thread << 22 | (Stamp)(clocks[simt_thread][simt_thread & 31] & 0x3ffff) << 4;
  for (size_t at = offset & ~(size_t)3; at < offset + nbytes; at += 4) {
    const unsigned from = at < offset ? offset - at : 0, to = offset + nbytes - at < 4 ? offset + nbytes - at : 4;
    const unsigned mask = (1u << to) - (1u << from);
    Cell* c = &cells[at / 4];
    const char* here = (const char*)address - offset + at;
    if (unordered(c->writer, mask, shared)) report(here, kind, c->writer, "wrote", pc);
    if (kind != ATOMIC && unordered(c->atomic, mask, shared)) report(here, kind, c->atomic, "updated", pc);
    if (kind == READ) {
      // another thread's latest read stays beside this one
      if ((c->readers[0] >> 22) != (me >> 22)) c->readers[1] = c->readers[0];
      c->readers[0] = me | mask;
      continue;
    }
    for (int i = 0; i < 2; i++)
      if (unordered(c->readers[i], mask, shared)) report(here, kind, c->readers[i], "read", pc);
    *(kind == WRITE ? &c->writer : &c->atomic) = me | mask;
  }
}

void simt_races_access(void* p, size_t nbytes, int kind, void* pc) { touch(p, nbytes, kind, pc); }

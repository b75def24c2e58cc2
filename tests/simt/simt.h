// SPDX-License-Identifier: Apache-2.0
// The simulator's parts to one another, and its face towards the fake driver.
#pragma once
#include "state.h"

// ---- simt.c: kernels ----

typedef struct {
  const simt_kernel* code;
  const simt_image* image;
  simt_dim grid, block;
  unsigned shared;
  void** parameters;
} simt_launch;

// Load an image that tests/simulator.py made; null with a message on stderr where it is none.
const simt_image* simt_load(const char* path);
// Run a kernel to its end; null, or what went wrong.
const char* simt_run(const simt_launch* launch);
// The order of blocks and threads: 0 as numbered, 1 backwards, else shuffled by that seed.
void simt_order(unsigned long long seed);
// Give up the kernel that runs, because of what the running thread does at that place of the code.
__attribute__((noreturn)) void simt_fail_at(const char* reason, void* pc);
extern unsigned simt_thread __attribute__((visibility("hidden")));  // the running one, in its block; 1024 and more: none

// ---- memory.c: device memory, and shared memory among it ----

// the part of the range that is shared memory
#define SIMT_SHARED ((size_t)1 << 30)
// Memory full of 0xA5, or null; `what` names it in messages.
void* simt_allocate(size_t nbytes, const char* what, int shared);
void simt_free(void* at);
const char* simt_describe(const void* address);
// Whether something wrote beside a piece of memory; null, or beside which.
const char* simt_check_memory(void);
// From the start of the range; at least SIMT_ARENA for other addresses, and before there is one.
extern char* simt_arena __attribute__((visibility("hidden")));
static inline size_t simt_offset(const void* address) { return (size_t)((const char*)address - simt_arena); }

// ---- races.c: what orders accesses ----

void simt_races_launch(void);
void simt_races_block(unsigned threads);
void simt_races_barrier(void);
void simt_races_meet(unsigned warp, unsigned mask);
void simt_races_fence(void);
void simt_races_access(void* address, size_t nbytes, int kind, void* pc);
void simt_forget_accesses(const void* from, size_t nbytes);

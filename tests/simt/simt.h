// SPDX-License-Identifier: Apache-2.0
// The scheduler's face towards the fake driver.
#pragma once
#include "state.h"

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

// Device memory that ends at a page without access.
void* simt_allocate(size_t nbytes);
void simt_free(void* at);
// Whether something wrote beside an allocation; null, or a message.
const char* simt_check_memory(void);

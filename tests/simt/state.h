// SPDX-License-Identifier: Apache-2.0
// What a compiled unit (simt.hpp, C++) and the scheduler (simt.c) share: the running thread's place, and calls that wait.
#pragma once
#include <stddef.h>

typedef struct {
  unsigned x, y, z;
} simt_dim;

// the range of shared and device memory
#define SIMT_ARENA ((size_t)32 << 30)
enum { SIMT_READ, SIMT_WRITE, SIMT_ATOMIC_ACCESS };

// What a thread waits in; all that meet must name the same place of the source.
typedef struct {
  const char* what;
  const char* file;
  int line;
} simt_site;

typedef struct {
  simt_dim thread, block, block_size, grid;
  unsigned lane;           // of its warp
  unsigned char* dynamic;  // shared memory given at launch

  // until all threads of the block are here
  void (*barrier)(simt_site);
  // until all lanes of the mask are here; what each of them gave, by lane
  const unsigned long long* (*meet)(simt_site, unsigned mask, unsigned long long given);
  // before an access of shared or device memory, which lies in one range; a fence
  void (*access)(void* address, size_t nbytes, int kind, void* pc);
  char* arena;
  void (*fence)(void);
  // room for a static shared variable
  void* (*place)(size_t nbytes);
} simt_state;

typedef struct {
  const char* name;
  unsigned max_threads;  // of a block, by __launch_bounds__; 0: not said
  int n;                 // parameters
  const size_t* widths;  // bytes of each
  void (*call)(void** parameters);
} simt_kernel;

#define SIMT_VARIABLES 64
typedef struct {
  int kernels_n, shared_n;
  const simt_kernel* kernels;
  struct {
    void* at;
    size_t nbytes;
  } shared[SIMT_VARIABLES];  // static shared memory, noted when first met
} simt_image;

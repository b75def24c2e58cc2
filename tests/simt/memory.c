// SPDX-License-Identifier: Apache-2.0
// Device and shared memory of the simulator: pieces of one range of addresses, each ending at pages without access.
//
// | no access | canaries | the piece | fewer than GRAIN canaries | no access |
// Freed pieces lose their access, and their addresses come back last. All of it lies in one range, so that an access is
// known to be one of a kernel's by its address alone (races.c).
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "simt.h"

enum { GRAIN = 32, PAGE = 4096, WIDE = 1 << 20, POISON = 0xA5, CANARY = 0xC5, FREED = 1024 };

typedef struct Piece {
  const char* what;
  char *map, *at;
  size_t mapped, nbytes;
  struct Piece* next;
} Piece;
static Piece* live;
static Piece freed[FREED];  // the latest, for messages
static unsigned freed_n;
char* simt_arena = (char*)-1;
static size_t next_free[2] = {SIMT_SHARED, 0};  // of device memory, of shared

// a free part of the range, behind what was given last
static char* find(size_t nbytes, int shared) {
  const size_t first = shared ? 0 : SIMT_SHARED, end = shared ? SIMT_SHARED : SIMT_ARENA;
  size_t* next = &next_free[shared];
  if (simt_arena == MAP_FAILED) {
    simt_arena = mmap(0, SIMT_ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (simt_arena == MAP_FAILED) return NULL;
  }
  for (int wraps = 0; wraps < 2;) {
    if (*next + nbytes > end) {
      *next = first, wraps++;
      continue;
    }
    char *from = simt_arena + *next, *to = from + nbytes;
    Piece* x = live;
    while (x && (to <= x->map || from >= x->map + x->mapped)) x = x->next;
    if (!x) return *next += nbytes, from;
    *next = x->map + x->mapped - simt_arena;
  }
  return NULL;
}

void* simt_allocate(size_t nbytes, const char* what, int shared) {
  const size_t grains = (nbytes + GRAIN - 1) / GRAIN * GRAIN, pages = (grains + PAGE - 1) / PAGE * PAGE;
  const size_t mapped = pages + 2 * WIDE;
  char* map = find(mapped, shared);
  if (!map || mprotect(map + WIDE, pages, PROT_READ | PROT_WRITE)) return NULL;
  Piece* x = malloc(sizeof *x);
  *x = (Piece){what, map, map + WIDE + pages - grains, mapped, nbytes, live};
  live = x;
  memset(map + WIDE, CANARY, pages);
  memset(x->at, POISON, nbytes);
  return x->at;
}

void simt_free(void* at) {
  for (Piece** p = &live; *p; p = &(*p)->next)
    if ((*p)->at == at) {
      Piece* x = *p;
      *p = x->next;
      madvise(x->map, x->mapped, MADV_DONTNEED);
      mprotect(x->map, x->mapped, PROT_NONE);
      simt_forget_accesses(x->map, x->mapped);
      freed[freed_n++ % FREED] = *x;
      free(x);
      return;
    }
}

static int beside(char* text, size_t n, const char* address, const Piece* x, const char* how) {
  if (address < x->map || address >= x->map + x->mapped) return 0;
  const long past = address - (x->at + x->nbytes), before = x->at - address;
  if (before > 0)
    snprintf(text, n, "%ld bytes before %s%s of %zu bytes", before, how, x->what, x->nbytes);
  else if (past >= 0)
    snprintf(text, n, "%ld bytes past the end of %s%s of %zu bytes", past, how, x->what, x->nbytes);
  else
    snprintf(text, n, "byte %ld of %s%s of %zu bytes", -before, how, x->what, x->nbytes);
  return 1;
}

const char* simt_describe(const void* address) {
  static char text[160];
  for (Piece* x = live; x; x = x->next)
    if (beside(text, sizeof text, address, x, "")) return text;
  for (unsigned i = 0; i < FREED; i++) {
    const Piece* x = &freed[(freed_n - 1 - i) % FREED];
    if (x->map && beside(text, sizeof text, address, x, "freed ")) return text;
  }
  return "no device memory";
}

// the first byte that is no canary
static char* altered(char* from, char* to) {
  while (from < to && *from == (char)CANARY) from++;
  return from < to ? from : NULL;
}
const char* simt_check_memory(void) {
  for (Piece* x = live; x; x = x->next) {
    char* found = altered(x->map + WIDE, x->at);
    if (!found) found = altered(x->at + x->nbytes, x->map + x->mapped - WIDE);
    if (found) return *found = CANARY, simt_describe(found);
  }
  return NULL;
}

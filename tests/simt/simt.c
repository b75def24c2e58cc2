// SPDX-License-Identifier: Apache-2.0
// Runs kernels on the CPU: a thread of a block is a fiber, which runs until it waits for others.
//
// Blocks run one after another, threads of a block by turns. What a GPU would only sometimes punish is an error here, told
// with kernel, block and thread: threads that wait for one another at different places or for one that has ended, accesses
// that memory.c or races.c object to, traps of the compiler's own checks. Shared memory is poisoned before every block.
#define _GNU_SOURCE
#include "simt.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { THREADS = 1024, PAGE = 4096, STACK = 256 << 10, SHARED = 228 << 10, POISON = 0xA5, NONE = THREADS };

typedef struct {
  int begun;     // there is a place where it goes on
  jmp_buf here;  // which is this
  char* stack;
  simt_dim at;
  enum { READY, AT_BARRIER, AT_MEETING, ENDED } state;
  simt_site site;  // what it waits in
  unsigned mask;
  unsigned long long given, seen[32];
} Fiber;

static Fiber fibers[THREADS];
static Fiber* running;
unsigned simt_thread = NONE;
static unsigned threads, ready, ended, at_barrier;
static jmp_buf scheduler;
static simt_state state;
static const simt_launch* launch;
static unsigned char* dynamic_end;
static char message[1024];
static sigjmp_buf broken;
static unsigned long long order;

void simt_order(unsigned long long seed) { order = seed; }

// ---- order ----

static unsigned long long random_state;
static unsigned below(unsigned n) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state % n;
}
static void arrange(unsigned* turn, unsigned n) {
  for (unsigned i = 0; i < n; i++) turn[i] = order == 1 ? n - 1 - i : i;
  if (order > 1)
    for (unsigned i = n; i > 1; i--) {
      const unsigned j = below(i), t = turn[j];
      turn[j] = turn[i - 1], turn[i - 1] = t;
    }
}

// ---- what went wrong ----

static __attribute__((noreturn)) void fail(const char* reason) {
  char text[sizeof message - 256];
  snprintf(text, sizeof text, "%s", reason);
  const simt_dim b = state.block, t = running ? running->at : (simt_dim){0, 0, 0};
  snprintf(message, sizeof message, "%s, block (%u, %u, %u), thread (%u, %u, %u): %s", launch->code->name, b.x, b.y, b.z,
           t.x, t.y, t.z, text);
  siglongjmp(broken, 1);
}

void simt_fail_at(const char* reason, void* pc) {
  char text[768];
  Dl_info found;
  if (dladdr(pc, &found) && found.dli_fname)
    snprintf(text, sizeof text, "%s at %s+0x%lx", reason, found.dli_fname, (long)((char*)pc - (char*)found.dli_fbase));
  else
    snprintf(text, sizeof text, "%s", reason);
  fail(text);
}

static const char* describe(const char* address) {
  for (unsigned i = 0; i < threads; i++)
    if (address < fibers[i].stack && address >= fibers[i].stack - PAGE) return "past the end of a thread's stack";
  return simt_describe(address);
}

static void on_signal(int number, siginfo_t* info, void* context) {
  char text[512];
  uintptr_t pc = 0;
#if defined(__x86_64__)
  pc = ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  pc = ((ucontext_t*)context)->uc_mcontext.pc;
#endif
  (void)context;
  if (number == SIGSEGV || number == SIGBUS)
    snprintf(text, sizeof text, "access to %p, %s", info->si_addr, describe(info->si_addr));
  else
    snprintf(text, sizeof text, number == SIGFPE ? "division by zero" : "index or alignment out of range");
  simt_fail_at(text, (void*)pc);
}

static void deadlock(void) {
  char text[768];
  unsigned n = 0, stuck = 0, used = 0;
  running = 0;
  for (unsigned i = 0; i < threads; i++)
    if (fibers[i].state != ENDED) {
      if (!running) running = &fibers[i];
      stuck++;
    }
  used += snprintf(text, sizeof text, "%u of %u threads wait for ever (%u ended):", stuck, threads, ended);
  for (unsigned i = 0; i < threads && n < 6 && used < sizeof text - 128; i++) {
    Fiber* f = &fibers[i];
    int first = f->state != ENDED;
    for (unsigned j = 0; j < i; j++)
      first &= fibers[j].state == ENDED || fibers[j].site.line != f->site.line || fibers[j].site.what != f->site.what ||
               fibers[j].mask != f->mask;
    if (first) {
      n++;
      used += snprintf(text + used, sizeof text - used, " thread %u in %s", i, f->site.what);
      if (f->state == AT_MEETING) used += snprintf(text + used, sizeof text - used, " of lanes 0x%x", f->mask);
      used += snprintf(text + used, sizeof text - used, " at %.60s:%d;", f->site.file, f->site.line);
    }
  }
  fail(text);
}

// ---- threads ----

static int same(simt_site a, simt_site b) { return a.line == b.line && !strcmp(a.file, b.file) && !strcmp(a.what, b.what); }

static void pause_thread(void) {
  ready--;
  if (!_setjmp(running->here)) _longjmp(scheduler, 1);
}

static void barrier(simt_site site) {
  Fiber* me = running;
  me->site = site, me->mask = 0, me->state = AT_BARRIER;
  if (++at_barrier < threads) return pause_thread();
  for (unsigned i = 0; i < threads; i++)
    if (!same(fibers[i].site, site)) ready = 0, deadlock();
  for (unsigned i = 0; i < threads; i++) fibers[i].state = READY;
  ready = threads, at_barrier = 0;
  simt_races_barrier();
}

static const unsigned long long* meet(simt_site site, unsigned mask, unsigned long long given) {
  Fiber *me = running, *warp = fibers + (me - fibers) / 32 * 32;
  me->site = site, me->mask = mask, me->given = given, me->state = AT_MEETING;
  if (!(mask >> ((me - fibers) & 31) & 1)) fail("a lane calls with a mask that does not have it");
  for (unsigned i = 0; i < 32; i++)
    if (mask >> i & 1) {
      Fiber* f = warp + i;
      if (f >= fibers + threads || f->state != AT_MEETING || f->mask != mask || !same(f->site, site)) {
        pause_thread();
        return me->seen;
      }
    }
  for (unsigned i = 0; i < 32; i++)
    if (mask >> i & 1) {
      for (unsigned j = 0; j < 32; j++) warp[i].seen[j] = mask >> j & 1 ? warp[j].given : 0;
      warp[i].state = READY, ready += &warp[i] != me;
    }
  simt_races_meet(warp - fibers, mask);
  return me->seen;
}

static void body(void) {
  for (;;) {  // a thread of this block, of the next one, of the next kernel
    launch->code->call(launch->parameters);
    running->state = ENDED, ended++;
    pause_thread();
  }
}

// ucontext makes the stack's first frame; later switches are jumps, which cost no system call
static void resume(Fiber* f) {
  if (_setjmp(scheduler)) return;
  if (f->begun) _longjmp(f->here, 1);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = f->stack;
  context.uc_stack.ss_size = STACK - (f - fibers) % 16 * 256;  // hot words of two stacks share no cache line
  makecontext(&context, body, 0);
  f->begun = 1;
  setcontext(&context);
}

static void run_block(void) {
  unsigned turn[THREADS];
  const simt_dim size = launch->block;
  memset(state.dynamic, POISON, dynamic_end - state.dynamic);
  for (int i = 0; i < launch->image->shared_n; i++)
    memset(launch->image->shared[i].at, POISON, launch->image->shared[i].nbytes);
  for (unsigned i = 0; i < threads; i++) {
    Fiber* f = &fibers[i];
    f->at = (simt_dim){i % size.x, i / size.x % size.y, i / size.x / size.y};
    f->state = READY;
  }
  ready = threads, ended = at_barrier = 0;
  simt_races_block(threads);
  while (ended < threads) {
    if (!ready) deadlock();
    arrange(turn, threads);
    for (unsigned i = 0; i < threads; i++) {
      running = &fibers[turn[i]];
      if (running->state != READY) continue;
      state.thread = running->at, state.lane = turn[i] & 31, simt_thread = turn[i];
      resume(running);
    }
  }
  running = 0, simt_thread = NONE;
}

static void* place(size_t nbytes) { return simt_allocate(nbytes, "static shared memory", 1); }

static void set_up(void) {
  if (dynamic_end) return;
  dynamic_end = (unsigned char*)simt_allocate(SHARED, "dynamic shared memory", 1) + SHARED;
  char* stacks =
      mmap(0, (size_t)THREADS * (STACK + PAGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (int i = 0; i < THREADS; i++) {
    fibers[i].stack = stacks + (size_t)i * (STACK + PAGE) + PAGE;
    mprotect(fibers[i].stack - PAGE, PAGE, PROT_NONE);
  }
}

const char* simt_run(const simt_launch* given) {
  static char alternate[64 << 10];
  static unsigned* turn;
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
  struct sigaction before[5], act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate}, stack_before;
  set_up();
  launch = given;
  threads = given->block.x * given->block.y * given->block.z;
  state = (simt_state){.block_size = given->block, .grid = given->grid, .barrier = barrier, .meet = meet};
  state.access = simt_races_access, state.arena = simt_arena, state.fence = simt_races_fence, state.place = place;
  state.dynamic = dynamic_end - ((given->shared + 15) & ~15u);
  random_state = order * 0x9E3779B97F4A7C15ull | 1;
  message[0] = 0;
  simt_races_launch();
  sigaltstack(&stack, &stack_before);
  for (int i = 0; i < 5; i++) sigaction(signals[i], &act, &before[i]);
  if (!sigsetjmp(broken, 1)) {
    const size_t n = (size_t)given->grid.x * given->grid.y * given->grid.z;
    free(turn), turn = malloc(n * sizeof *turn);
    arrange(turn, n);
    for (size_t i = 0; i < n; i++) {
      const unsigned b = turn[i];
      state.block = (simt_dim){b % given->grid.x, b / given->grid.x % given->grid.y, b / given->grid.x / given->grid.y};
      run_block();
    }
  }
  for (int i = 0; i < THREADS && message[0]; i++) fibers[i].begun = 0;  // none goes on where it was
  for (int i = 0; i < 5; i++) sigaction(signals[i], &before[i], 0);
  sigaltstack(&stack_before, 0);
  const char* beside = simt_check_memory();
  if (!message[0] && beside) snprintf(message, sizeof message, "%s, some thread: wrote %s", launch->code->name, beside);
  launch = 0, running = 0, simt_thread = NONE;
  return message[0] ? message : 0;
}

const simt_image* simt_load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const simt_image* (*attach)(simt_state*) = 0;
  if (library) *(void**)&attach = dlsym(library, "simt_attach");
  if (attach) return attach(&state);
  fprintf(stderr, "simulator: %s\n", dlerror());
  return 0;
}

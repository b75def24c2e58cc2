// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU: what cuda-bindings resolves of it runs in plain memory, under the test's control.
//
// Streams are clocks: work enqueued on a stream is done once the test advances it (`fake_advance`), and an event recorded
// on it is complete when everything enqueued before it is. A stream made by `fake_stream(context, 1)` runs by itself.
// Copies move their bytes only when they are done, so that memory reused too early shows. Every call can be made to fail
// (`fake_fail`), to block (`fake_block`), is counted (`fake_calls`), and what is not given back is counted (`fake_live`).
// Kernels are recorded only, or run where the module is one of the simulator's (tests/simt).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simt.h"

typedef int CUresult;
enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, ALREADY_REGISTERED = 712,
  NOT_REGISTERED = 713, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, CAPTURE_UNSUPPORTED = 900,
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

// ---- counting, failing, blocking ----

#define CALLS 64
static struct {
  char name[48];
  long calls;
  long fail_at;   // the n-th call from now fails; 0: none
  int code;       // with this code
  int fail_all;   // and all later ones too
  int block;      // calls wait while this is set
  long blocked;   // how many do
} table[CALLS];
static int n_table;

static int slot_of(const char* name) {  // under the mutex
  for (int i = 0; i < n_table; i++)
    if (!strcmp(table[i].name, name)) return i;
  snprintf(table[n_table].name, sizeof table[n_table].name, "%s", name);
  return n_table++;
}

// Every driver function begins here: with the mutex held on return, and the code it must fail with.
static CUresult enter(const char* name) {
  pthread_mutex_lock(&mutex);
  int i = slot_of(name);
  table[i].calls++;
  while (table[i].block) {
    table[i].blocked++;
    pthread_cond_broadcast(&changed);
    pthread_cond_wait(&changed, &mutex);
    table[i].blocked--;
  }
  if (table[i].fail_at > 0 && --table[i].fail_at == 0) {
    if (table[i].fail_all) table[i].fail_at = 1;
    return table[i].code;
  }
  return SUCCESS;
}
static CUresult leave(CUresult r) {
  pthread_mutex_unlock(&mutex);
  return r;
}
#define BEGIN                         \
  CUresult r = enter(__func__);       \
  if (r) return leave(r);
#define END(value) return leave(value)

void fake_fail(const char* name, long nth, int code, int all) {
  pthread_mutex_lock(&mutex);
  int i = slot_of(name);
  table[i].fail_at = nth, table[i].code = code, table[i].fail_all = all;
  pthread_mutex_unlock(&mutex);
}
void fake_block(const char* name, int on) {
  pthread_mutex_lock(&mutex);
  table[slot_of(name)].block = on;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
long fake_blocked(const char* name) {
  pthread_mutex_lock(&mutex);
  long n = table[slot_of(name)].blocked;
  pthread_mutex_unlock(&mutex);
  return n;
}
long fake_calls(const char* name) {  // of all functions if name is null
  long n = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < n_table; i++)
    if (!name || !strcmp(table[i].name, name)) n += table[i].calls;
  pthread_mutex_unlock(&mutex);
  return n;
}
// Name of the i-th function that was ever called, or null.
const char* fake_called(int i) { return i < n_table ? table[i].name : 0; }

// ---- host memory ----

typedef struct Range {
  char* base;
  size_t nbytes;
  int registered;
  struct Range* next;
} Range;
static Range* ranges;
static size_t live_bytes, live_ranges, limit_bytes = SIZE_MAX;

static void add_range(char* base, size_t nbytes, int registered) {
  Range* x = malloc(sizeof *x);
  *x = (Range){base, nbytes, registered, ranges};
  ranges = x;
  live_bytes += nbytes, live_ranges++;
}
static int drop_range(char* base, int registered) {
  for (Range** p = &ranges; *p; p = &(*p)->next) {
    Range* x = *p;
    if (x->base != base || x->registered != registered) continue;
    *p = x->next;
    live_bytes -= x->nbytes, live_ranges--;
    free(x);
    return 1;
  }
  return 0;
}

size_t fake_live_bytes(void) { return live_bytes; }
size_t fake_live_ranges(void) { return live_ranges; }
void fake_forget_ranges(void) {
  pthread_mutex_lock(&mutex);
  while (ranges) {
    Range* x = ranges;
    ranges = x->next;
    free(x);
  }
  live_bytes = live_ranges = 0;
  pthread_mutex_unlock(&mutex);
}
void fake_limit(size_t nbytes) { limit_bytes = nbytes; }
// Whether the bytes occur in any page-locked range.
int fake_find(const void* needle, size_t n) {
  int found = 0;
  pthread_mutex_lock(&mutex);
  for (Range* x = ranges; x && !found; x = x->next) found = memmem(x->base, x->nbytes, needle, n) != NULL;
  pthread_mutex_unlock(&mutex);
  return found;
}

// ---- contexts, streams, events ----

#define CONTEXTS 8
typedef struct Context { uint64_t id; int device; } Context;
static Context contexts[CONTEXTS] = {{101, 0}, {102, 1}, {103, 0}, {104, 1}};
static long retained[2];
static __thread Context* stack[32];
static __thread int depth;

typedef struct Work {  // a copy; a kernel that really runs; a wait for another stream
  void* to;
  const void* from;
  size_t n;
  simt_launch* launch;
  struct Stream* other;
  uint64_t other_at;
  uint64_t at;
  struct Work* next;
} Work;
typedef struct Stream {
  Context* context;
  uint64_t enqueued, done;  // clock
  int automatic, capturing, destroyed;
  long waited;
  Work* work;
  struct Stream* next;
} Stream;
typedef struct Mark {
  Stream* stream;
  uint64_t at;
} Mark;
typedef struct Event {
  Context* context;
  Stream* stream;
  uint64_t at;
  int recorded, timed;
  Mark* marks;  // in place of the one stream: all of a context
  int n_marks;
} Event;
static long live_events, live_streams;
static Stream** streams;  // all there ever were
static int n_streams;

// Automatic streams run at once, or late: only what somebody waits for, or asks about often enough. A wait that is missing
// shows. 2: and now and then something else.
static int late;
static Stream* automatic_streams;

static uint64_t enqueue(Stream* s) {
  s->enqueued++;
  if (s->automatic && !late) s->done = s->enqueued;
  return s->enqueued;
}

static char fault[1024];  // what a simulated kernel did wrong
static CUresult failed;   // and what the driver says of it from then on, until the test asks

static void run_kernel(simt_launch* launch) {
  const char* wrong = failed ? 0 : simt_run(launch);
  if (wrong) {
    failed = ILLEGAL_ADDRESS;
    snprintf(fault, sizeof fault, "%s", wrong);
    fprintf(stderr, "simulator: %s\n", fault);
  }
  for (int i = 0; i < launch->code->n; i++) free(launch->parameters[i]);
  free(launch->parameters), free(launch);
}
// What went wrong in a kernel, told once; null if nothing did.
const char* fake_fault(void) {
  static char text[sizeof fault];
  pthread_mutex_lock(&mutex);
  memcpy(text, fault, sizeof fault);
  const int any = failed;
  failed = 0;
  pthread_mutex_unlock(&mutex);
  return any ? text : 0;
}

static void reach(Stream* s, uint64_t at);
static void finish(Stream* s) {  // under the mutex: work up to the clock happens
  while (s->work && s->work->at <= s->done) {
    Work* w = s->work;
    if (w->launch)
      run_kernel(w->launch);
    else if (w->other)
      reach(w->other, w->other_at);
    else
      memcpy(w->to, w->from, w->n);
    s->work = w->next;
    free(w);
  }
  pthread_cond_broadcast(&changed);
}
static void reach(Stream* s, uint64_t at) {
  while (s->automatic && s->done < at) s->done++, finish(s);
}
static void reach_something(void) {
  static unsigned draw = 1;
  for (Stream* s = automatic_streams; s; s = s->next)
    if ((draw = draw * 1103515245 + 12345) >> 16 & 1) reach(s, s->done + (s->enqueued - s->done) / 2);
}
// 0: automatic streams run at once, and what they have is done now.
void fake_late(int how) {
  pthread_mutex_lock(&mutex);
  late = how;
  for (Stream* s = automatic_streams; s && !late; s = s->next) reach(s, s->enqueued);
  pthread_mutex_unlock(&mutex);
}
static void add_work(Stream* s, Work work) {
  Work** p = &s->work;
  while (*p) p = &(*p)->next;
  *p = malloc(sizeof work);
  work.at = enqueue(s);
  **p = work;
  finish(s);
  if (late == 2) reach_something();
}

Context* fake_context(int i) { return &contexts[i]; }
Stream* fake_stream(Context* c, int automatic) {
  Stream* s = calloc(1, sizeof *s);
  s->context = c, s->automatic = automatic;
  if (automatic) s->next = automatic_streams, automatic_streams = s;
  streams = realloc(streams, (n_streams + 1) * sizeof *streams);
  streams[n_streams++] = s;
  live_streams++;
  return s;
}
void fake_capture(Stream* s, int on) { s->capturing = on; }
// Work goes on: `steps` of it, or all if negative.
void fake_advance(Stream* s, long steps) {
  pthread_mutex_lock(&mutex);
  s->done = steps < 0 || s->done + steps > s->enqueued ? s->enqueued : s->done + steps;
  finish(s);
  pthread_mutex_unlock(&mutex);
}
long fake_live_events(void) { return live_events; }
void* fake_current(void) { return depth ? stack[depth - 1] : 0; }
void fake_make_current(Context* c) { depth = 0; if (c) stack[depth++] = c; }
long fake_retained(int device) { return retained[device]; }

// Handles 1 and 2 are the default streams of the current context, which run by themselves.
static Stream* real(Stream* s) {
  static Stream* defaults[CONTEXTS];
  if ((uintptr_t)s != 1 && (uintptr_t)s != 2) return s;
  Context* c = depth ? stack[depth - 1] : contexts;
  Stream** d = &defaults[c - contexts];
  if (!*d) *d = fake_stream(c, 1), live_streams--;
  return *d;
}

// ---- the driver's functions ----

CUresult cuInit(unsigned flags) { BEGIN (void)flags; END(SUCCESS); }
CUresult cuDriverGetVersion(int* v) { *v = 13000; return SUCCESS; }
CUresult cuGetErrorName(int code, const char** s) {
  switch (code) {
    case 0: *s = "CUDA_SUCCESS"; break;
    case 1: *s = "CUDA_ERROR_INVALID_VALUE"; break;
    case 2: *s = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case 4: *s = "CUDA_ERROR_DEINITIALIZED"; break;
    case 100: *s = "CUDA_ERROR_NO_DEVICE"; break;
    case 700: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case 712: *s = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; break;
    case 801: *s = "CUDA_ERROR_NOT_SUPPORTED"; break;
    case 999: *s = "CUDA_ERROR_UNKNOWN"; break;
    default: *s = "CUDA_ERROR_FAKE";
  }
  return SUCCESS;
}
CUresult cuGetErrorString(int code, const char** s) { (void)code; *s = "said the fake driver"; return SUCCESS; }

CUresult cuDeviceGet(int* d, int ordinal) { BEGIN if (ordinal < 0 || ordinal > 1) END(101); *d = ordinal; END(SUCCESS); }
CUresult cuDeviceGetCount(int* n) { BEGIN *n = 2; END(SUCCESS); }
CUresult cuDevicePrimaryCtxRetain(Context** c, int d) { BEGIN retained[d]++; *c = &contexts[d]; END(SUCCESS); }
CUresult cuDevicePrimaryCtxRelease_v2(int d) { BEGIN retained[d]--; END(SUCCESS); }
CUresult cuCtxGetCurrent(Context** c) { BEGIN *c = depth ? stack[depth - 1] : 0; END(SUCCESS); }
CUresult cuCtxSetCurrent(Context* c) { BEGIN depth = 0; if (c) stack[depth++] = c; END(SUCCESS); }
CUresult cuCtxPushCurrent_v2(Context* c) { BEGIN if (!c || depth == 32) END(INVALID_CONTEXT); stack[depth++] = c; END(SUCCESS); }
CUresult cuCtxPopCurrent_v2(Context** c) {
  pthread_mutex_lock(&mutex);  // never made to fail: a failing pop would be a bug of the caller
  if (!depth) END(INVALID_CONTEXT);
  depth--;
  if (c) *c = stack[depth];
  END(SUCCESS);
}
CUresult cuCtxGetDevice(int* d) { BEGIN if (!depth) END(INVALID_CONTEXT); *d = stack[depth - 1]->device; END(SUCCESS); }
CUresult cuCtxGetId(Context* c, unsigned long long* id) { BEGIN if (!c) END(INVALID_CONTEXT); *id = c->id; END(SUCCESS); }

CUresult cuMemHostAlloc(void** p, size_t n, unsigned flags) {
  BEGIN (void)flags;
  if (!depth) END(INVALID_CONTEXT);
  if (!n) END(INVALID_VALUE);
  if (live_bytes + n > limit_bytes) END(OUT_OF_MEMORY);
  if (posix_memalign(p, 4096, n)) END(OUT_OF_MEMORY);
  memset(*p, 0xA5, n);  // whatever was there before
  add_range(*p, n, 0);
  END(SUCCESS);
}
CUresult cuMemFreeHost(void* p) {
  BEGIN
  if (!depth) END(INVALID_CONTEXT);
  if (!drop_range(p, 0)) END(INVALID_VALUE);
  free(p);
  END(SUCCESS);
}
CUresult cuMemHostRegister_v2(void* p, size_t n, unsigned flags) {
  BEGIN (void)flags;
  if (!depth) END(INVALID_CONTEXT);
  if (!n) END(INVALID_VALUE);
  uintptr_t from = (uintptr_t)p & ~4095ul, to = ((uintptr_t)p + n + 4095) & ~4095ul;
  for (Range* x = ranges; x; x = x->next) {
    uintptr_t a = (uintptr_t)x->base & ~4095ul, b = ((uintptr_t)x->base + x->nbytes + 4095) & ~4095ul;
    if (from < b && a < to) END(ALREADY_REGISTERED);
  }
  if (live_bytes + n > limit_bytes) END(OUT_OF_MEMORY);
  add_range(p, n, 1);
  END(SUCCESS);
}
CUresult cuMemHostUnregister(void* p) {
  BEGIN
  if (!depth) END(INVALID_CONTEXT);
  END(drop_range(p, 1) ? SUCCESS : NOT_REGISTERED);
}

static int manual;  // streams made by the code under test are the test's to advance
void fake_manual(int on) { manual = on; }
CUresult cuStreamCreate(Stream** s, unsigned flags) {
  BEGIN (void)flags;
  if (!depth) END(INVALID_CONTEXT);
  *s = fake_stream(stack[depth - 1], !manual);
  END(SUCCESS);
}
// The work of a destroyed stream goes on, so its clock stays.
CUresult cuStreamDestroy_v2(Stream* s) { BEGIN live_streams--; s->destroyed = 1; END(SUCCESS); }
CUresult cuStreamWaitEvent(Stream* s, Event* e, unsigned flags) {
  BEGIN (void)flags;
  s = real(s);
  if (!s || s->destroyed || !e->recorded) END(INVALID_HANDLE);
  s->waited++;  // the order itself is the test's, by advancing
  if (s->automatic && e->stream) add_work(s, (Work){.other = e->stream, .other_at = e->at});
  for (int i = 0; s->automatic && i < e->n_marks; i++)
    add_work(s, (Work){.other = e->marks[i].stream, .other_at = e->marks[i].at});
  END(SUCCESS);
}
long fake_waited(Stream* s) { return real(s)->waited; }
long fake_live_streams(void) { return live_streams; }
CUresult cuStreamGetCtx(Stream* s, Context** c) {
  BEGIN
  s = real(s);
  if (!s && !depth) END(INVALID_CONTEXT);
  *c = s ? s->context : stack[depth - 1];
  END(SUCCESS);
}
CUresult cuStreamIsCapturing(Stream* s, int* status) { BEGIN s = real(s); *status = s && s->capturing; END(SUCCESS); }
CUresult cuStreamSynchronize(Stream* s) {
  BEGIN
  if (s) reach(s, s->enqueued);
  while (s && s->done < s->enqueued) pthread_cond_wait(&changed, &mutex);
  END(failed);
}

CUresult cuEventCreate(Event** e, unsigned flags) {
  BEGIN
  if (!depth) END(INVALID_CONTEXT);
  *e = calloc(1, sizeof **e);
  (*e)->context = stack[depth - 1], (*e)->timed = !(flags & 2);
  live_events++;
  END(SUCCESS);
}
CUresult cuEventDestroy_v2(Event* e) { BEGIN live_events--; free(e->marks); free(e); END(SUCCESS); }
CUresult cuEventRecord(Event* e, Stream* s) {
  BEGIN
  s = real(s);
  if (s && (s->destroyed || e->context != s->context)) END(INVALID_HANDLE);  // an event of another device
  if (s && s->capturing) END(CAPTURE_UNSUPPORTED);
  e->stream = s, e->at = s ? enqueue(s) : 0, e->recorded = 1;
  if (s) finish(s);
  END(SUCCESS);
}
static int complete(Event* e) {  // under the mutex
  if (!e->recorded) return 1;
  if (!e->marks) return !e->stream || e->stream->done >= e->at;
  for (int i = 0; i < e->n_marks; i++)
    if (e->marks[i].stream->done < e->marks[i].at) return 0;
  return 1;
}
// Let what it stands for run: a step of each stream, or all.
static void reach_event(Event* e, uint64_t steps) {
  for (int i = 0; i < e->n_marks || (!e->marks && e->stream && !i); i++) {
    Mark m = e->marks ? e->marks[i] : (Mark){e->stream, e->at};
    if (m.stream->done < m.at) reach(m.stream, steps ? m.stream->done + steps : m.at);
  }
}
CUresult cuEventQuery(Event* e) {
  BEGIN
  reach_event(e, 1);
  if (failed) END(failed);
  END(complete(e) ? SUCCESS : NOT_READY);
}
CUresult cuEventSynchronize(Event* e) {
  BEGIN
  reach_event(e, 0);
  while (!complete(e)) pthread_cond_wait(&changed, &mutex);
  END(failed);
}
// All that was enqueued on any stream of the context.
CUresult cuCtxRecordEvent(Context* c, Event* e) {
  BEGIN
  if (e->context != c) END(INVALID_HANDLE);
  free(e->marks);
  e->marks = calloc(n_streams + 1, sizeof *e->marks), e->n_marks = 0, e->recorded = 1;
  for (int i = 0; i < n_streams; i++)
    if (streams[i]->context == c) e->marks[e->n_marks++] = (Mark){streams[i], streams[i]->enqueued};
  END(SUCCESS);
}

CUresult cuEventElapsedTime_v2(float* ms, Event* a, Event* b) {  // a step of a clock is a millisecond
  BEGIN
  if (!a->timed || !b->timed || a->stream != b->stream) END(INVALID_HANDLE);
  if (a->stream->done < a->at || b->stream->done < b->at) END(NOT_READY);
  *ms = (float)(b->at - a->at);
  END(SUCCESS);
}

// ---- device facts and device memory (which is host memory here) ----

CUresult cuDeviceGetName(char* name, int n, int d) { BEGIN snprintf(name, n, "Fake %d", d); END(SUCCESS); }
CUresult cuDeviceGetUuid_v2(char* uuid, int d) { BEGIN memset(uuid, 0xA0 + d, 16); END(SUCCESS); }
static size_t total_memory = 16 << 20;
static int multiprocessors = 132;
void fake_device(size_t nbytes, int n) { total_memory = nbytes, multiprocessors = n; }
CUresult cuDeviceTotalMem_v2(size_t* n, int d) { BEGIN (void)d; *n = total_memory; END(SUCCESS); }
CUresult cuDeviceGetAttribute(int* v, int attribute, int d) {
  BEGIN (void)d;
  *v = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? multiprocessors : -1;
  END(SUCCESS);
}

typedef struct Piece {
  char* base;
  size_t nbytes;
  struct Piece* next;
} Piece;
static Piece* pieces;
static size_t live_device;
static int memory_pool;  // its address is the handle

size_t fake_live_device(void) { return live_device; }
// Whether all the bytes are allocated on the device.
static int on_device(uint64_t p, size_t n) {
  for (Piece* x = pieces; x; x = x->next)
    if (p >= (uint64_t)x->base && p + n <= (uint64_t)x->base + x->nbytes) return 1;
  return 0;
}
CUresult cuMemGetInfo_v2(size_t* left, size_t* total) {
  BEGIN
  if (!depth) END(INVALID_CONTEXT);
  *total = 16 << 20, *left = *total - live_device;
  END(SUCCESS);
}
CUresult cuPointerGetAttribute(void* out, int attribute, uint64_t p) {
  BEGIN
  if (attribute != 9 || !on_device(p, 1)) END(INVALID_VALUE);
  *(int*)out = 0;  // the device of all memory here
  END(SUCCESS);
}
CUresult cuMemPoolCreate(int** pool, const void* props) { BEGIN (void)props; *pool = &memory_pool; END(SUCCESS); }
CUresult cuMemPoolSetAttribute(int* pool, int attribute, void* value) {
  BEGIN (void)attribute, (void)value;
  END(pool == &memory_pool ? SUCCESS : INVALID_VALUE);
}
CUresult cuMemPoolTrimTo(int* pool, size_t keep) { BEGIN (void)keep; END(pool == &memory_pool ? SUCCESS : INVALID_VALUE); }
CUresult cuMemAllocFromPoolAsync(uint64_t* p, size_t n, int* pool, Stream* s) {
  BEGIN
  if (!depth || s->context != stack[depth - 1]) END(INVALID_CONTEXT);
  if (!n || pool != &memory_pool) END(INVALID_VALUE);
  Piece* x = malloc(sizeof *x);
  *x = (Piece){simt_allocate(n, "device memory", 0), n, pieces};
  if (!x->base) END(OUT_OF_MEMORY);
  pieces = x, live_device += n, *p = (uint64_t)x->base;
  END(SUCCESS);
}
CUresult cuMemFreeAsync(uint64_t p, Stream* s) {
  BEGIN
  if (!depth || s->context != stack[depth - 1]) END(INVALID_CONTEXT);
  for (Piece** x = &pieces; *x; x = &(*x)->next)
    if ((uint64_t)(*x)->base == p) {
      Piece* gone = *x;
      *x = gone->next, live_device -= gone->nbytes;
      simt_free(gone->base), free(gone);  // whoever still reads it crashes
      END(SUCCESS);
    }
  END(INVALID_VALUE);
}

// ---- modules: "fake;kernel:8,8,4;other:4" with the widths of the parameters, or "simt;path" of a simulator's image ----

typedef struct Kernel {
  char name[64];
  int n, shared;
  size_t width[64];
  const simt_kernel* code;
  const simt_image* image;
} Kernel;
typedef struct Module { int n; Kernel kernels[64]; } Module;
static long live_modules;
// The latest launch.
static struct { Kernel* kernel; unsigned size[7]; Stream* stream; unsigned char bytes[64][64]; } launched;

CUresult cuModuleLoadData(Module** m, const char* image) {
  BEGIN
  if (!depth) END(INVALID_CONTEXT);
  int real = !strncmp(image, "\x7f" "ELF", 4);  // a cubin: taken, its kernels unknown
  const simt_image* simulated = strncmp(image, "simt;", 5) ? 0 : simt_load(image + 5);
  if (!real && !simulated && strncmp(image, "fake;", 5)) END(200);
  *m = calloc(1, sizeof **m);
  for (int i = 0; simulated && i < simulated->kernels_n && i < 64; i++) {
    Kernel* k = &(*m)->kernels[(*m)->n++];
    const simt_kernel* code = &simulated->kernels[i];
    *k = (Kernel){.n = code->n, .shared = 48 << 10, .code = code, .image = simulated};
    snprintf(k->name, sizeof k->name, "%s", code->name);
    memcpy(k->width, code->widths, code->n * sizeof *k->width);
  }
  for (const char* s = real || simulated ? "" : image + 5; *s; s += *s == ';') {
    Kernel* k = &(*m)->kernels[(*m)->n++];
    size_t l = strcspn(s, ":");
    memcpy(k->name, s, l), s += l + 1;
    while (*s && *s != ';') k->width[k->n++] = strtoul(s, (char**)&s, 10), s += *s == ',';
  }
  live_modules++;
  END(SUCCESS);
}
CUresult cuModuleGetFunction(Kernel** k, Module* m, const char* name) {
  BEGIN
  for (int i = 0; i < m->n; i++)
    if (!strcmp(m->kernels[i].name, name)) {
      *k = &m->kernels[i];
      END(SUCCESS);
    }
  END(NOT_FOUND);
}
CUresult cuFuncLoad(Kernel* k) { BEGIN (void)k; END(SUCCESS); }
CUresult cuFuncGetParamInfo(Kernel* k, size_t i, size_t* offset, size_t* width) {
  BEGIN
  if (i >= (size_t)k->n) END(INVALID_VALUE);
  *offset = 0, *width = k->width[i];
  END(SUCCESS);
}
CUresult cuFuncSetAttribute(Kernel* k, int attribute, int value) {
  BEGIN
  if (attribute != 8 || value > 227 << 10) END(INVALID_VALUE);
  k->shared = value;
  END(SUCCESS);
}
CUresult cuLaunchKernel(Kernel* k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        Stream* s, void** parameters, void** extra) {
  BEGIN (void)extra;
  if (!depth || (s && s->context != stack[depth - 1])) END(INVALID_CONTEXT);
  if (bx * by * bz > 1024 || shared > (unsigned)k->shared) END(INVALID_VALUE);
  launched.kernel = k, launched.stream = s;
  memcpy(launched.size, (unsigned[]){gx, gy, gz, bx, by, bz, shared}, sizeof launched.size);
  for (int i = 0; i < k->n; i++)
    if (k->width[i] <= sizeof launched.bytes[i]) memcpy(launched.bytes[i], parameters[i], k->width[i]);
  if (!k->code) {
    if (s) enqueue(s), finish(s);
    END(SUCCESS);
  }
  if (k->code->max_threads && bx * by * bz > k->code->max_threads) END(INVALID_VALUE);
  if (failed) END(failed);
  simt_launch* launch = malloc(sizeof *launch);
  *launch = (simt_launch){k->code, k->image, {gx, gy, gz}, {bx, by, bz}, shared, malloc(k->n * sizeof(void*) + 1)};
  for (int i = 0; i < k->n; i++) launch->parameters[i] = memcpy(malloc(k->width[i]), parameters[i], k->width[i]);
  if (s)
    add_work(s, (Work){.launch = launch});
  else
    run_kernel(launch);
  END(failed);
}
const char* fake_launched(unsigned* size, Stream** s) {
  memcpy(size, launched.size, sizeof launched.size), *s = launched.stream;
  return launched.kernel->name;
}
const void* fake_argument(int i) { return launched.bytes[i]; }

static CUresult copy(void* to, const void* from, size_t n, Stream* s) {
  add_work(s, (Work){to, from, n, .at = 0});
  return SUCCESS;
}
CUresult cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t n, Stream* s) {
  BEGIN
  if (!depth || s->destroyed || s->context != stack[depth - 1]) END(INVALID_CONTEXT);
  END(on_device(to, n) ? copy((void*)to, from, n, s) : INVALID_VALUE);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t n, Stream* s) {
  BEGIN
  if (!depth || s->destroyed || s->context != stack[depth - 1]) END(INVALID_CONTEXT);
  END(on_device(from, n) ? copy(to, (void*)from, n, s) : INVALID_VALUE);
}
// The test's own copies, without a Python binding in between.
int fake_copy(void* to, const void* from, size_t n, Stream* s) {
  BEGIN
  END(copy(to, from, n, s));
}

// What was still called while the process ended, for the tests of interpreter exit.
__attribute__((destructor)) static void report(void) {
  if (!getenv("FAKE_REPORT")) return;
  for (int i = 0; i < n_table; i++) fprintf(stdout, "%s %ld\n", table[i].name, table[i].calls);
}

// ---- how cuda-bindings finds them ----

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* status) {
  char versioned[128];
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  (void)version, (void)flags;
  *function = 0;
  const char* missing = getenv("FAKE_MISSING");  // a function this driver does not have
  if (self && !(missing && !strcmp(missing, name))) {
    snprintf(versioned, sizeof versioned, "%s_v2", name);
    *function = dlsym(self, versioned);
    if (!*function) *function = dlsym(self, name);
  }
  if (status) *status = *function ? 0 : 1;
  return *function ? SUCCESS : NOT_FOUND;
}
CUresult cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, 0);
}

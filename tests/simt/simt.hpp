// SPDX-License-Identifier: Apache-2.0
// The device's language for g++: what kernels use of CUDA C++, on top of the scheduler in simt.c.
//
// Stands before the preprocessed text of a unit; `__shared__` and kernels' tables are made by simulator.py. Threads of a
// block run one at a time, so atomic operations are plain ones.
#pragma once
#include "state.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

namespace simt {

using u32 = unsigned int;
using u64 = unsigned long long;

static simt_state before;  // until it is loaded
static simt_state* state = &before;
static simt_image image;

// room for a variable in shared memory
template <class T>
T* place() {
  if (image.shared_n == SIMT_VARIABLES) __builtin_trap();
  void* at = state->place(sizeof(T));
  image.shared[image.shared_n++] = {at, sizeof(T)};
  return static_cast<T*>(at);
}

// in front of every access
#define SIMT_UNCHECKED __attribute__((no_sanitize("thread")))
[[maybe_unused]] SIMT_UNCHECKED static inline void touch(void* p, size_t nbytes, int kind) {
  if (static_cast<size_t>(static_cast<char*>(p) - state->arena) < SIMT_ARENA)
    state->access(p, nbytes, kind, __builtin_return_address(0));
}

template <class T>
u64 word(T x) {
  static_assert(sizeof(T) <= 8 && __is_trivially_copyable(T), "lanes exchange numbers of up to 64 bits");
  u64 r = 0;
  __builtin_memcpy(&r, &x, sizeof(T));
  return r;
}
template <class T>
T number(u64 w) {
  T x;
  __builtin_memcpy(&x, &w, sizeof(T));
  return x;
}

// what lane `from` gave; garbage where it is not of the mask
template <class T>
T shuffle(simt_site site, u32 mask, T x, u32 from) {
  const u64* given = state->meet(site, mask, word(x));
  return number<T>(mask >> (from & 31) & 1 ? given[from & 31] : 0xA5A5A5A5A5A5A5A5ull);
}

template <int... i>
struct Numbers {};
template <int n, int... i>
struct Count : Count<n - 1, n - 1, i...> {};
template <int... i>
struct Count<0, i...> {
  using type = Numbers<i...>;
};

template <class T>
struct Bare {
  using type = T;
};
template <class T>
struct Bare<const T> {
  using type = T;
};

template <auto kernel>
struct Entry;
template <class... A, void (*kernel)(A...)>
struct Entry<kernel> {
  static constexpr size_t widths[sizeof...(A) + 1] = {sizeof(A)..., 0};
  template <int... i>
  static void spread(void** p, Numbers<i...>) {
    kernel(*static_cast<typename Bare<A>::type*>(p[i])...);
  }
  static void call(void** p) { spread(p, typename Count<sizeof...(A)>::type{}); }
  static constexpr simt_kernel make(const char* name, unsigned max_threads) {
    return {name, max_threads, sizeof...(A), widths, call};
  }
};
constexpr unsigned bounds(unsigned threads = 0, unsigned = 0, unsigned = 0) { return threads; }

}  // namespace simt

#define threadIdx (::simt::state->thread)
#define blockIdx (::simt::state->block)
#define blockDim (::simt::state->block_size)
#define gridDim (::simt::state->grid)
constexpr int warpSize = 32;

// where a call stands, as its last arguments
#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define SIMT_SITE \
  simt_site { __func__, file, line }

inline void __syncthreads(SIMT_HERE) { simt::state->barrier(SIMT_SITE); }
inline void __syncwarp(unsigned mask = ~0u, SIMT_HERE) { simt::state->meet(SIMT_SITE, mask, 0); }
inline void __threadfence() { simt::state->fence(); }
inline void __threadfence_block() {}

template <class T>
T __shfl_sync(unsigned mask, T x, int from, int width = 32, SIMT_HERE) {
  const unsigned lane = simt::state->lane;
  return simt::shuffle(SIMT_SITE, mask, x, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned delta, int width = 32, SIMT_HERE) {
  const unsigned lane = simt::state->lane, at = lane & (width - 1);
  return simt::shuffle(SIMT_SITE, mask, x, at < delta ? lane : lane - delta);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned delta, int width = 32, SIMT_HERE) {
  const unsigned lane = simt::state->lane, at = lane & (width - 1);
  return simt::shuffle(SIMT_SITE, mask, x, at + delta >= unsigned(width) ? lane : lane + delta);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int flip, int width = 32, SIMT_HERE) {
  const unsigned lane = simt::state->lane, from = lane ^ flip;
  return simt::shuffle(SIMT_SITE, mask, x, from >= (lane & ~(width - 1)) + width ? lane : from);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_HERE) {
  const unsigned long long* given = simt::state->meet(SIMT_SITE, mask, predicate != 0);
  unsigned r = 0;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) r |= unsigned(given[i]) << i;
  return r;
}
inline int __any_sync(unsigned mask, int predicate, SIMT_HERE) { return __ballot_sync(mask, predicate, file, line) != 0; }
inline int __all_sync(unsigned mask, int predicate, SIMT_HERE) { return __ballot_sync(mask, predicate, file, line) == mask; }

// ---- one thread runs at a time ----

template <class T, class F>
SIMT_UNCHECKED T simt_update(T* p, F change) {
  simt::touch(p, sizeof(T), SIMT_ATOMIC_ACCESS);
  const T before = *p;
  *p = change(before);
  return before;
}
#define SIMT_ATOMIC(name, T, expression)                           \
  inline T name(T* p, T x) {                                       \
    return simt_update(p, [x](T old) -> T { return expression; }); \
  }
#define SIMT_ATOMICS(name, expression)    \
  SIMT_ATOMIC(name, int, expression)      \
  SIMT_ATOMIC(name, unsigned, expression) \
  SIMT_ATOMIC(name, unsigned long long, expression)
SIMT_ATOMICS(atomicAdd, old + x)
SIMT_ATOMICS(atomicMax, old > x ? old : x)
SIMT_ATOMICS(atomicMin, old < x ? old : x)
SIMT_ATOMICS(atomicAnd, old& x)
SIMT_ATOMICS(atomicOr, old | x)
SIMT_ATOMICS(atomicXor, old ^ x)
SIMT_ATOMICS(atomicExch, x)
template <class T>
SIMT_UNCHECKED T atomicCAS(T* p, T expected, T x) {
  simt::touch(p, sizeof(T), SIMT_ATOMIC_ACCESS);
  const T before = *p;
  if (before == expected) *p = x;
  return before;
}
template <class T>
T __ldg(const T* p) {
  return *p;
}

// ---- bits ----

inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned long long>(a) * b >> 32; }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned __int128>(a) * b >> 64;
}

// ---- what g++ calls, -fsanitize=thread ----

#define SIMT_ACCESS(name, nbytes, kind) \
  SIMT_UNCHECKED void __tsan_##name(void* p) { ::simt::touch(p, nbytes, kind); }
#define SIMT_ACCESSES(n)                               \
  SIMT_ACCESS(read##n, n, SIMT_READ)                   \
  SIMT_ACCESS(write##n, n, SIMT_WRITE)                 \
  SIMT_ACCESS(unaligned_read##n, n, SIMT_READ)         \
  SIMT_ACCESS(unaligned_write##n, n, SIMT_WRITE)       \
  SIMT_ACCESS(volatile_read##n, n, SIMT_ATOMIC_ACCESS) \
  SIMT_ACCESS(volatile_write##n, n, SIMT_ATOMIC_ACCESS)
extern "C" {
SIMT_ACCESSES(1)
SIMT_ACCESSES(2)
SIMT_ACCESSES(4)
SIMT_ACCESSES(8)
SIMT_ACCESSES(16)
SIMT_UNCHECKED void __tsan_read_range(void* p, size_t n) { ::simt::touch(p, n, SIMT_READ); }
SIMT_UNCHECKED void __tsan_write_range(void* p, size_t n) { ::simt::touch(p, n, SIMT_WRITE); }
void __tsan_init() {}
}

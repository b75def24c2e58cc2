// SPDX-License-Identifier: Apache-2.0
// What kernels use of CUDA C++, a piece at a time, for `tests/gpu/test_device_primitives.py`; then what must be reported.

namespace pinzk {

struct Point {
  u32 x;
  unsigned char tag;
  u64 y;
};

PINZK_INLINE u32 index() { return blockIdx.x * blockDim.x + threadIdx.x; }

// one variable for each instance
template <class T>
PINZK_INLINE T reversed_in_block(T x) {
  __shared__ T values[256];
  values[threadIdx.x] = x;
  __syncthreads();
  return values[blockDim.x - 1 - threadIdx.x];
}

}  // namespace pinzk

using namespace pinzk;

#define PINZK_SHUFFLES(name, T)                                                        \
  extern "C" __global__ void name(T* out, const T* in, const int width, const u32 n) { \
    const u32 i = index(), all = 0xffffffffu;                                          \
    const T x = in[i];                                                                 \
    out[i] = __shfl_sync(all, x, 5, width);                                            \
    out[n + i] = __shfl_up_sync(all, x, 3, width);                                     \
    out[2 * n + i] = __shfl_down_sync(all, x, 3, width);                               \
    out[3 * n + i] = __shfl_xor_sync(all, x, 6, width);                                \
    out[4 * n + i] = __shfl_sync(all, x, static_cast<int>(x), width);                  \
  }
PINZK_SHUFFLES(shuffles_u32, u32)
PINZK_SHUFFLES(shuffles_u64, u64)

// halves of a warp vote apart, in loops of different lengths
extern "C" __global__ void votes(u32* out, const u32* in, const u32 n) {
  const u32 i = index(), lane = threadIdx.x % 32, mask = lane < 12 ? 0xfffu : 0xfffff000u;
  u32 ballots = 0;
  for (u32 j = 0; j < (lane < 12 ? 3 : 1); j++) ballots ^= __ballot_sync(mask, in[i] >> j & 1);
  out[i] = ballots;
  out[n + i] = __any_sync(mask, in[i] & 1);
  out[2 * n + i] = __all_sync(mask, in[i] & 1);
  __syncwarp();
  out[3 * n + i] = __ballot_sync(0xffffffffu, in[i] & 1);
}

extern "C" __global__ void block_reverse(u64* out, const u64* in) {
  extern __shared__ u64 dynamic[];
  dynamic[threadIdx.x] = in[index()];
  __syncthreads();
  const u64 x = dynamic[blockDim.x - 1 - threadIdx.x];
  out[index()] = reversed_in_block(reversed_in_block(x) + reversed_in_block(static_cast<u32>(x)));
}

// a sum over the block by halves, the last warp by shuffles
extern "C" __global__ __launch_bounds__(256) void block_sum(u64* out, const u64* in) {
  __shared__ u64 sums[256];
  u32 t = threadIdx.x;
  sums[t] = in[index()];
  for (u32 half = blockDim.x / 2; half >= 32; half /= 2) {
    __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  if (t >= 32) return;
  u64 sum = sums[t];
  for (u32 delta = 16; delta; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
  if (t == 0) out[blockIdx.x] = sum;
}

// counters: sum, maximum, minimum, or, compare-and-swap, exchange; of 32 and of 64 bits
#define PINZK_ATOMICS(name, T)                                 \
  extern "C" __global__ void name(T* counters, const T* in) {  \
    const T x = in[index()];                                   \
    atomicAdd(&counters[0], x);                                \
    atomicMax(&counters[1], x);                                \
    atomicMin(&counters[2], x);                                \
    atomicOr(&counters[3], x);                                 \
    T seen = *const_cast<volatile T*>(&counters[4]);           \
    for (T before; seen < x; seen = before) {                  \
      before = atomicCAS(&counters[4], seen, x);               \
      if (before == seen) break;                               \
    }                                                          \
    const T old = atomicExch(&counters[5], x);                 \
    atomicAdd(&counters[6], old); /* all but the last added */ \
  }
PINZK_ATOMICS(atomics_u32, u32)
PINZK_ATOMICS(atomics_u64, u64)

extern "C" __global__ void bits(u64* out, const u64* in, const u32 n) {
  const u32 i = index();
  if (i >= n) return;
  const u64 x = in[i];
  const u32 low = static_cast<u32>(x);
  const u64 all[] = {u64(__clz(low)), u64(__clzll(x)),  u64(__popc(low)), u64(__popcll(x)),  u64(__ffs(low)),
                     u64(__ffsll(x)), u64(__brev(low)), u64(__brevll(x)), u64(__ldg(in + i))};
  for (int k = 0; k < 9; k++) out[k * n + i] = all[k];
}

extern "C" __global__ void places(u32* out) {
  const u32 b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const u32 t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[b * blockDim.x * blockDim.y * blockDim.z + t] = b << 16 | t;
}

extern "C" __global__ void parameters(u64* out, const Point p, const unsigned char small, const int negative,
                                      const u64 large) {
  out[0] = p.x, out[1] = p.tag, out[2] = p.y, out[3] = small, out[4] = static_cast<u64>(negative), out[5] = large;
}

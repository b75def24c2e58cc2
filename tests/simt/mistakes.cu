// SPDX-License-Identifier: Apache-2.0
// Kernels that are wrong, each in its own way; the simulator must say so (`tests/gpu/test_device_mistakes.py`).

using namespace pinzk;

extern "C" __global__ void barrier_of_some(u32* out) {
  if (threadIdx.x != 7) __syncthreads();
  out[threadIdx.x] = 1;
}

extern "C" __global__ void barriers_apart(u32* out) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

extern "C" __global__ void lane_missing(u32* out) {
  if (threadIdx.x != 3) out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);
}

extern "C" __global__ void lane_not_in_mask(u32* out) { out[threadIdx.x] = __ballot_sync(0xffff, 1); }

extern "C" __global__ void write_at(u32* out, const int i) { out[i] = 1; }

extern "C" __global__ void read_at(u32* out, const u32* in, const int i) { out[0] = in[i]; }

extern "C" __global__ void shared_at(u32* out, const int i) {
  extern __shared__ u32 dynamic[];
  dynamic[i] = 1;
  out[0] = dynamic[i];
}

extern "C" __global__ void index_at(u32* out, const int i) {
  __shared__ u32 values[32];
  values[i] = 1;
  __syncthreads();
  out[0] = values[0];
}

struct alignas(16) Quad {
  u64 w[2];
};
extern "C" __global__ void misaligned(u64* out, const int i) { *reinterpret_cast<Quad*>(out + i) = Quad{{1, 2}}; }

extern "C" __global__ __launch_bounds__(64) void bounded(u32* out) { out[threadIdx.x] = 1; }

__attribute__((noinline)) u64 deep(u64 n) { return n ? deep(n - 1) * n + deep(n / 2) : 1; }
extern "C" __global__ void deeper(u64* out, const u64 n) { out[0] = deep(n); }

extern "C" __global__ void unwritten(u32* out, const u32* in) {
  __shared__ u32 values[32];
  extern __shared__ u32 dynamic[];
  if (out == nullptr) values[0] = dynamic[0] = 0;
  out[0] = values[threadIdx.x], out[1] = dynamic[threadIdx.x], out[2] = in[threadIdx.x];
}

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

extern "C" __global__ void write_at(u32* out, const int i) {
  if (threadIdx.x == 0) out[i] = 1;
}

extern "C" __global__ void read_at(u32* out, const u32* in, const int i) {
  if (threadIdx.x == 0) out[0] = in[i];
}

extern "C" __global__ void shared_at(u32* out, const int i) {
  extern __shared__ u32 dynamic[];
  if (threadIdx.x) return;
  dynamic[i] = 1;
  out[0] = dynamic[i];
}

extern "C" __global__ void index_at(u32* out, const int i) {
  __shared__ u32 values[32];
  if (threadIdx.x) return;
  values[i] = 1;
  out[0] = values[0];
}

struct alignas(16) Quad {
  u64 w[2];
};
extern "C" __global__ void misaligned(u64* out, const int i) {
  if (threadIdx.x == 0) *reinterpret_cast<Quad*>(out + i) = Quad{{1, 2}};
}

extern "C" __global__ __launch_bounds__(64) void bounded(u32* out) { out[threadIdx.x] = 1; }

__attribute__((noinline)) u64 deep(u64 n) { return n ? deep(n - 1) * n + deep(n / 2) : 1; }
extern "C" __global__ void deeper(u64* out, const u64 n) { out[0] = deep(n); }

extern "C" __global__ void unwritten(u32* out, const u32* in) {
  __shared__ u32 values[32];
  extern __shared__ u32 dynamic[];
  if (out == nullptr) values[0] = dynamic[0] = 0;
  if (threadIdx.x == 0) out[0] = values[0], out[1] = dynamic[0], out[2] = in[0];
}

// ---- races; `ordered` says whether the kernel does what would order the accesses ----

extern "C" __global__ void neighbours(u32* out, const u32 ordered) {
  __shared__ u32 values[64];
  values[threadIdx.x] = threadIdx.x;
  if (ordered) __syncthreads();
  out[threadIdx.x] = values[63 - threadIdx.x];
}

extern "C" __global__ void overwritten(u32* out, const u32 ordered) {
  extern __shared__ u32 dynamic[];
  dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  const u32 x = dynamic[63 - threadIdx.x];
  if (ordered) __syncthreads();
  dynamic[threadIdx.x] = x;
  out[threadIdx.x] = x;
}

extern "C" __global__ void lanes(u32* out, const u32 ordered) {
  __shared__ u32 values[32];
  values[threadIdx.x] = threadIdx.x;
  if (ordered) __syncwarp();
  out[threadIdx.x] = values[31 - threadIdx.x];
}

// halves of a warp, each ordered by its own lanes alone
extern "C" __global__ void half_lanes(u32* out, const u32 flip) {
  __shared__ u32 values[32];
  values[threadIdx.x] = threadIdx.x;
  __syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u);
  out[threadIdx.x] = values[threadIdx.x ^ flip];
}

extern "C" __global__ void same_word(u32* out, const u32 ordered) {
  if (ordered)
    atomicAdd(out, 1);
  else
    out[0] = out[0] + 1;
}

// bytes of one word are not one place
extern "C" __global__ void bytes(unsigned char* out, const u32 step) { out[threadIdx.x / step] = 1; }

// the last block to come sums what all of them wrote
extern "C" __global__ void last_block(u32* out, u32* parts, u32* counter, const u32 ordered) {
  __shared__ u32 before;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (ordered) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) before = atomicAdd(counter, 1);
  __syncthreads();
  if (before + 1 < gridDim.x || threadIdx.x) return;
  u32 sum = 0;
  for (u32 i = 0; i < gridDim.x * blockDim.x; i++) sum += parts[i];
  out[0] = sum;
}

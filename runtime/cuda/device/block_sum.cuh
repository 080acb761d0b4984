//===- block_sum.cuh - Sums over a block, always in one order ---*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

struct Plus {
  template <typename R> __device__ R operator()(R a, R b) const {
    return a + b;
  }
};
struct Larger {
  template <typename R> __device__ R operator()(R a, R b) const {
    // A NaN stays.
    return a > b || a != a ? a : b;
  }
};

/// Of one value of each thread of a block of whole warps, threadIdx.y 0; all
/// threads get it. By pairs within warps, then over the warps.
template <typename R, typename Combine>
__device__ R overBlock(R value, Combine combine) {
  __shared__ R warps[kWarp];
#pragma unroll
  for (int apart = kWarp / 2; apart > 0; apart /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, apart));
  const unsigned warp = threadIdx.x / kWarp, count = blockDim.x / kWarp;
  __syncthreads(); // who asked before has read it
  if (threadIdx.x % kWarp == 0)
    warps[warp] = value;
  __syncthreads();
  R all = warps[0];
  for (unsigned w = 1; w < count; ++w)
    all = combine(all, warps[w]);
  return all;
}

template <typename R> __device__ R sumOverBlock(R value) {
  return overBlock(value, Plus());
}

/// The same of several values at once.
template <typename R, int Sums>
__device__ Several<R, Sums> sumsOverBlock(Several<R, Sums> values) {
  __shared__ R warps[Sums][kWarp];
  const unsigned warp = threadIdx.x / kWarp, count = blockDim.x / kWarp;
  __syncthreads(); // who asked before has read it
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
#pragma unroll
    for (int apart = kWarp / 2; apart > 0; apart /= 2)
      values[s] += __shfl_xor_sync(0xffffffffU, values[s], apart);
    if (threadIdx.x % kWarp == 0)
      warps[s][warp] = values[s];
  }
  __syncthreads();
  for (int s = 0; s < Sums; ++s) {
    values[s] = warps[s][0];
    for (unsigned w = 1; w < count; ++w)
      values[s] += warps[s][w];
  }
  return values;
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH

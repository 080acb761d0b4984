//===- block_sum.cuh - Sums over a block, in a fixed order ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH

#include "runtime/cuda/device/elements.cuh"
#include "runtime/cuda/device/launch.cuh"

namespace mtplan::runtime::cuda {

/// Adds two values.
struct Plus {
  template <typename R> __device__ R operator()(R a, R b) const {
    return a + b;
  }
};
/// Returns the larger of two values. A NaN in `a` stays.
struct Larger {
  template <typename R> __device__ R operator()(R a, R b) const {
    return a > b || a != a ? a : b;
  }
};

/// Combines one value of each of `Lanes` neighbouring lanes of a warp, by
/// pairs; all of them get the result.
template <int Lanes = kWarp, typename R, typename Combine>
__device__ R overWarp(R value, Combine combine) {
#pragma unroll
  for (int apart = Lanes / 2; apart > 0; apart /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, apart));
  return value;
}

/// Combines one value of each thread of a block of whole warps, threadIdx.y 0,
/// by pairs within warps, then over the warps; all threads get the result.
template <typename R, typename Combine>
__device__ R overBlock(R value, Combine combine) {
  __shared__ R warps[kWarp];
  value = overWarp(value, combine);
  const unsigned warp = threadIdx.x / kWarp, count = blockDim.x / kWarp;
  __syncthreads(); // all threads have read the previous result
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

/// Sums several values at once.
template <typename R, int Sums>
__device__ Several<R, Sums> sumsOverBlock(Several<R, Sums> values) {
  __shared__ R warps[Sums][kWarp];
  const unsigned warp = threadIdx.x / kWarp, count = blockDim.x / kWarp;
  __syncthreads(); // all threads have read the previous result
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
    values[s] = overWarp(values[s], Plus());
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

/// A sum in twice double precision, like runtime/backend/long_sum.h. Squares
/// are rounded by an intrinsic: a compiler that fused them with the sum would
/// remove the lost part. Members have no initial values, so that blocks may
/// share the struct.
struct DeviceLongSum {
  double sum, lost;

  __device__ void add(double value) {
    const double next = sum + value, taken = next - sum;
    lost += (sum - (next - taken)) + (value - taken);
    sum = next;
  }
  __device__ void addSquare(double value) {
    const double square = __dmul_rn(value, value);
    lost += fma(value, value, -square);
    add(square);
  }
  /// In double the square of a float is exact.
  __device__ void addSquare(float value) {
    add(__dmul_rn(static_cast<double>(value), static_cast<double>(value)));
  }
  __device__ void add(const DeviceLongSum &other) {
    add(other.sum);
    lost += other.lost;
  }
  /// Returns the sum alone if it is not finite.
  __device__ double value() const { return isfinite(sum) ? sum + lost : sum; }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH

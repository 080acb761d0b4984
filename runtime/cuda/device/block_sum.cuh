//===- block_sum.cuh - Sums over a block in a fixed order -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH

#include "runtime/cuda/device/elements.cuh"
#include "runtime/cuda/device/launch.cuh"

namespace mtplan::runtime::cuda {

struct Plus {
  template <typename R> __device__ R operator()(R a, R b) const {
    return a + b;
  }
};
/// Returns the larger of two values, or NaN if one of them is NaN.
struct Larger {
  template <typename R> __device__ R operator()(R a, R b) const {
    return a > b || a != a ? a : b;
  }
};

/// Combines one value of each of `Lanes` adjacent lanes of a warp by a
/// butterfly exchange. Returns the result on all of these lanes.
template <int Lanes = kWarp, typename R, typename Combine>
__device__ R overWarp(R value, Combine combine) {
#pragma unroll
  for (int apart = Lanes / 2; apart > 0; apart /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, apart));
  return value;
}

/// Combines one value of each thread of a block, first within warps, then over
/// the warps. Returns the result on all threads. The block must consist of full
/// warps, with a blockDim.y of 1.
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

/// Returns the sums of several values per thread over a block, on all threads,
/// with one barrier.
/// \param warps  shared memory with one row per sum. No barrier follows the
///               reads, so consecutive calls must pass different memory.
/// \tparam Warps  the largest number of warps per block
template <unsigned Warps, typename R, int Sums>
__device__ Several<R, Sums> sumsOverBlock(Several<R, Sums> values,
                                          R (*warps)[kWarp]) {
  const unsigned warp = threadIdx.x / kWarp, count = blockDim.x / kWarp;
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
    values[s] = overWarp(values[s], Plus());
    if (threadIdx.x % kWarp == 0)
      warps[s][warp] = values[s];
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < Sums; ++s) {
    values[s] = warps[s][0];
#pragma unroll
    for (unsigned w = 1; w < Warps; ++w)
      if (w < count)
        values[s] += warps[s][w];
  }
  return values;
}

/// Computes a sum in double-double precision, like runtime/backend/long_sum.h.
/// Squares are computed by intrinsics, because a contracted square and sum
/// would lose the rounding error. Members have no initializers, because
/// variables in shared memory permit none.
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
  /// The square of a float is exact in double.
  __device__ void addSquare(float value) {
    add(__dmul_rn(static_cast<double>(value), static_cast<double>(value)));
  }
  __device__ void add(const DeviceLongSum &other) {
    add(other.sum);
    lost += other.lost;
  }
  /// Returns the corrected sum, or `sum` if `sum` is not finite.
  __device__ double value() const { return isfinite(sum) ? sum + lost : sum; }
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_BLOCK_SUM_CUH

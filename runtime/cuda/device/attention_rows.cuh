//===- attention_rows.cuh - What backward knows of rows ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_ROWS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_ROWS_CUH

#include "runtime/cuda/device/attention_tiles.cuh"

namespace mtplan::runtime::cuda {

/// What a query's row keeps for all of its keys.
template <typename R> struct RowNumbers {
  R lse;        ///< logarithm of the sum of its scores' exponentials
  R projection; ///< part of all its probabilities' gradients
};

/// A warp for each row.
template <typename R>
__global__ void project(Operand result, Operand above, Operand lse,
                        std::int64_t rows, std::int64_t width,
                        RowNumbers<R> *to) {
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (kTileThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= rows)
    return;
  R sum = R(0);
  for (std::int64_t h = threadIdx.x % kWarp; h < width; h += kWarp)
    sum += loadOne<R>(result, row * width + h) *
           loadOne<R>(above, row * width + h);
#pragma unroll
  for (int apart = kWarp / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, apart);
  if (threadIdx.x % kWarp == 0)
    to[row] = {loadOne<R>(lse, row), sum};
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_ROWS_CUH

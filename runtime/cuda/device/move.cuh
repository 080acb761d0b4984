//===- move.cuh - Strided copies --------------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_MOVE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_MOVE_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Describes contiguous runs of `length` elements of a source tensor, one for
/// each tuple of indices below `sizes`, in row-major order. A run begins at
/// element `start` + the sum of index * step over the dimensions.
struct Strides {
  int dims = 0;
  std::int64_t sizes[kMostDims], steps[kMostDims];
  std::int64_t start, length;

  /// Returns the index of the first element of a run.
  __device__ std::int64_t at(std::int64_t run) const {
    std::int64_t place = start;
    for (int d = dims - 1; d >= 0; --d) {
      place += run % sizes[d] * steps[d];
      run /= sizes[d];
    }
    return place;
  }
};

/// Returns a source of a single run, of `length` elements from `start` on.
inline Strides contiguous(std::int64_t start, std::int64_t length) {
  return {0, {}, {}, start, length};
}

/// Copies all runs to a contiguous result. A thread copies a pack.
template <typename R>
__global__ void takeRuns(Operand from, Result to, std::int64_t runs,
                         Strides source) {
  const auto [run, h, count] = packOfThread(source.length);
  if (run >= runs)
    return;
  R x[kPack];
  load(from, source.at(run) + h, count, x);
  store(to, run * source.length + h, count, x);
}

template <typename R>
void take(cudaStream_t stream, const Operand &from, const Result &to,
          std::int64_t runs, const Strides &source) {
  launch(stream, gridOfPacks(runs, source.length), takeRuns<R>, from, to, runs,
         source);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_MOVE_CUH

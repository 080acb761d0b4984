//===- move.cuh - What is cut out or turned round ---------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_MOVE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_MOVE_CUH

#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

/// As runtime/backend/strided_source.h has it.
struct Strides {
  int dims = 0;
  std::int64_t sizes[kMostDims], steps[kMostDims];
  std::int64_t start, length;

  __device__ std::int64_t at(std::int64_t run) const {
    std::int64_t place = start;
    for (int d = dims - 1; d >= 0; --d) {
      place += run % sizes[d] * steps[d];
      run /= sizes[d];
    }
    return place;
  }
};

/// A thread for each pack of each run.
template <typename R>
__global__ void takeRuns(Operand from, Result to, std::int64_t runs,
                         Strides source) {
  const std::int64_t packs = (source.length + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= runs * packs)
    return;
  const std::int64_t run = pack / packs, h = pack % packs * kPack;
  const int count = packAt(h, source.length);
  R x[kPack];
  load(from, source.at(run) + h, count, x);
  store(to, run * source.length + h, count, x);
}

template <typename R>
void take(cudaStream_t stream, const Operand &from, const Result &to,
          std::int64_t runs, const Strides &source) {
  constexpr unsigned kThreads = 256;
  launch(stream,
         {blocksFor(runs * blocksFor(source.length, kPack), kThreads), 1,
          kThreads},
         takeRuns<R>, from, to, runs, source);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_MOVE_CUH

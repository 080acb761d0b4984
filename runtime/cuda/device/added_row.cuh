//===- added_row.cuh - A vector beside every row ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ADDED_ROW_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ADDED_ROW_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// One pack a thread.
template <typename R>
__global__ void addRowToEach(Operand from, Operand row, std::int64_t width,
                             Result to, std::int64_t elements) {
  const std::int64_t first =
      (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  if (first >= elements)
    return;
  const int count =
      elements - first < kPack ? static_cast<int>(elements - first) : kPack;
  R values[kPack];
  load(from, first, count, values);
#pragma unroll
  for (int e = 0; e < kPack; ++e)
    if (e < count)
      values[e] += loadOne<R>(row, (first + e) % width);
  store(to, first, count, values);
}

/// `to` = `from` + `row`, which begins again after `width` elements.
template <typename R>
void addRow(cudaStream_t stream, const Operand &from, const Operand &row,
            std::int64_t width, const Result &to, std::int64_t elements) {
  constexpr unsigned kThreads = 256;
  launch(stream,
         {blocksFor(elements, std::int64_t{kThreads} * kPack), 1, kThreads},
         addRowToEach<R>, from, row, width, to, elements);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ADDED_ROW_CUH

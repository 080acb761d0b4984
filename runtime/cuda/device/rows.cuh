//===- rows.cuh - Rows of a tensor, by packs --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ROWS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ROWS_CUH

#include <algorithm>

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Elements of the pack that begins at `first`, of a row of `width`.
inline __host__ __device__ int packAt(std::int64_t first, std::int64_t width) {
  return width - first < kPack ? static_cast<int>(width - first) : kPack;
}

/// Of a block that takes a row: as many as it has packs, in whole warps.
inline unsigned threadsOfRow(std::int64_t width, unsigned most) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(
      blocksFor(blocksFor(width, kPack), kWarp) * kWarp, kWarp, most));
}

/// Calls `use(first, count)` for this thread's packs of a row.
template <typename Use>
__device__ void packsOfRow(std::int64_t width, Use use) {
  for (std::int64_t first = std::int64_t{threadIdx.x} * kPack; first < width;
       first += std::int64_t{blockDim.x} * kPack)
    use(first, packAt(first, width));
}

/// Rows that are added up to one; below 0: none.
struct SourceRows {
  std::int64_t first = -1, second = -1;
};

/// A thread for each pack of each row of the result, which is the sum of the
/// rows that `source(row)` names, or zeros.
template <typename R, typename Source>
__global__ void gatherRows(Operand first, Operand second, Result to,
                           std::int64_t rows, std::int64_t width,
                           Source source) {
  const std::int64_t packs = (width + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= rows * packs)
    return;
  const std::int64_t row = pack / packs, h = pack % packs * kPack;
  const int count = packAt(h, width);
  const SourceRows from = source(row);
  R sum[kPack] = {}, other[kPack];
  if (from.first >= 0)
    load(first, from.first * width + h, count, sum);
  if (from.second >= 0) {
    load(second, from.second * width + h, count, other);
    // What is there alone keeps its sign, also if it is zero.
    for (int i = 0; i < kPack; ++i)
      sum[i] = from.first >= 0 ? sum[i] + other[i] : other[i];
  }
  store(to, row * width + h, count, sum);
}

/// Queues it. \param second  of which no source speaks may have no data
template <typename R, typename Source>
void gather(cudaStream_t stream, const Operand &first, const Operand &second,
            const Result &to, std::int64_t rows, std::int64_t width,
            const Source &source) {
  constexpr unsigned kThreads = 256;
  launch(stream,
         {blocksFor(rows * blocksFor(width, kPack), kThreads), 1, kThreads},
         gatherRows<R, Source>, first, second, to, rows, width, source);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ROWS_CUH

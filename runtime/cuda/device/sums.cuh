//===- sums.cuh - Sums over samples and over all ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH

#include "runtime/cuda/device/column_sums.cuh"
#include "runtime/cuda/device/long_sum.cuh"
#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

template <typename R> struct SumTerm {
  Operand from;
  std::int64_t width;
  __device__ void operator()(std::int64_t row, std::int64_t column,
                             Several<R, 1> &sums) const {
    sums[0] += loadOne<R>(from, row * width + column);
  }
};

/// Down to columns: over rows and samples.
template <typename R>
void sum(cudaStream_t stream, const Operand &from, const Result &to,
         const ColumnSizes &sizes, void *scratch) {
  sumColumns<R, 1>(stream, sizes, static_cast<R *>(scratch), {{to}},
                   SumTerm<R>{from, sizes.columns});
}

inline constexpr unsigned kSquareThreads = 256;
inline constexpr std::int64_t kSquarePacks = 16; ///< of a thread
inline constexpr std::int64_t kSquaresOfBlock =
    kSquareThreads * kSquarePacks * kPack;

/// All threads' sums, by pairs; thread 0 gets it.
inline __device__ DeviceLongSum longSumOverBlock(const DeviceLongSum &mine) {
  __shared__ DeviceLongSum threads[kSquareThreads];
  threads[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned apart = kSquareThreads / 2; apart > 0; apart /= 2) {
    if (threadIdx.x < apart)
      threads[threadIdx.x].add(threads[threadIdx.x + apart]);
    __syncthreads();
  }
  return threads[0];
}

template <typename R>
__global__ void sumSquares(Operand from, std::int64_t elements,
                           DeviceLongSum *parts) {
  DeviceLongSum sum{0.0, 0.0};
  R x[kPack];
  for (std::int64_t pack = 0; pack < kSquarePacks; ++pack) {
    const std::int64_t first =
        std::int64_t{blockIdx.x} * kSquaresOfBlock +
        (pack * kSquareThreads + std::int64_t{threadIdx.x}) * kPack;
    if (first >= elements)
      break;
    const int count = packAt(first, elements);
    load(from, first, count, x);
    for (int i = 0; i < count; ++i)
      sum.addSquare(static_cast<double>(x[i]));
  }
  sum = longSumOverBlock(sum);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

/// One block.
static __global__ void addParts(const DeviceLongSum *parts, std::int64_t count,
                                DeviceLongSum *to) {
  DeviceLongSum sum{0.0, 0.0};
  for (std::int64_t i = threadIdx.x; i < count; i += kSquareThreads)
    sum.add(parts[i]);
  sum = longSumOverBlock(sum);
  if (threadIdx.x == 0)
    to->add(sum);
}

inline std::size_t squareSumScratch(std::int64_t elements) {
  return static_cast<std::size_t>(blocksFor(elements, kSquaresOfBlock)) *
         sizeof(DeviceLongSum);
}

/// Adds squares to `to`.
template <typename R>
void squareSum(cudaStream_t stream, const Operand &from, DeviceLongSum *to,
               std::int64_t elements, void *scratch) {
  const std::int64_t blocks = blocksFor(elements, kSquaresOfBlock);
  auto *parts = static_cast<DeviceLongSum *>(scratch);
  launch(stream, {blocks, 1, kSquareThreads}, sumSquares<R>, from, elements,
         parts);
  launch(stream, {1, 1, kSquareThreads}, addParts,
         static_cast<const DeviceLongSum *>(parts), blocks, to);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH

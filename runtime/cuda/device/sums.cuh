//===- sums.cuh - Sums over samples and over all ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH

#include "runtime/cuda/device/column_sums.cuh"
#include "runtime/cuda/device/deal.cuh"
#include "runtime/cuda/device/long_sum.cuh"

namespace mtplan::runtime::cuda {

template <typename R> struct SumTerm {
  Operand from;
  std::int64_t width;
  __device__ void operator()(std::int64_t row, std::int64_t column, int count,
                             R (&sums)[kPack]) const {
    addPack(from, row * width + column, count, sums);
  }
};

/// Down to columns: over rows and samples. \p adds  to what is there
template <typename R>
void sum(cudaStream_t stream, const Operand &from, const Result &to,
         const ColumnSizes &sizes, void *scratch, bool adds = false) {
  sumColumns<R>(stream, sizes, static_cast<R *>(scratch), to,
                SumTerm<R>{from, sizes.columns}, adds);
}

/// All threads' sums, by pairs; thread 0 gets it.
inline __device__ DeviceLongSum longSumOverBlock(const DeviceLongSum &mine) {
  __shared__ DeviceLongSum threads[kDealThreads];
  threads[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned apart = kDealThreads / 2; apart > 0; apart /= 2) {
    if (threadIdx.x < apart)
      threads[threadIdx.x].add(threads[threadIdx.x + apart]);
    __syncthreads();
  }
  return threads[0];
}

/// What a sum of squares is told of a tensor.
struct Squared {
  Operand from;
  std::int64_t elements;
};

/// Of a piece, by one block.
template <typename R>
__device__ DeviceLongSum squaresOf(const Squared &one, std::int64_t piece) {
  DeviceLongSum sum{0.0, 0.0};
  packsOfPiece(piece, one.elements, [&](std::int64_t first, int count) {
    R x[kPack];
    load(one.from, first, count, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) // zeros from `count` on
      sum.addSquare(x[i]);
  });
  return longSumOverBlock(sum);
}

template <typename R>
__global__ void sumSquares(Squared one, DeviceLongSum *parts) {
  const DeviceLongSum sum = squaresOf<R>(one, blockIdx.x);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

template <typename R>
__global__ void sumManySquares(Deal<Squared> all, DeviceLongSum *parts) {
  const Share share = all.shares[blockIdx.x];
  const DeviceLongSum sum = squaresOf<R>(all.items[share.tensor], share.piece);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

/// One block.
static __global__ void addParts(const DeviceLongSum *parts, std::int64_t count,
                                DeviceLongSum *to) {
  DeviceLongSum sum{0.0, 0.0};
  for (std::int64_t i = threadIdx.x; i < count; i += kDealThreads)
    sum.add(parts[i]);
  sum = longSumOverBlock(sum);
  if (threadIdx.x == 0)
    to->add(sum);
}

inline std::size_t squareSumScratch(std::int64_t elements) {
  return static_cast<std::size_t>(blocksFor(elements, kDealt)) *
         sizeof(DeviceLongSum);
}
inline std::size_t squareSumScratch(const Deal<Squared> &all) {
  return static_cast<std::size_t>(all.blocks) * sizeof(DeviceLongSum);
}

/// Adds squares to `to`.
template <typename R>
void squareSum(cudaStream_t stream, const Operand &from, DeviceLongSum *to,
               std::int64_t elements, void *scratch) {
  const std::int64_t blocks = blocksFor(elements, kDealt);
  auto *parts = static_cast<DeviceLongSum *>(scratch);
  launch(stream, {blocks, 1, kDealThreads}, sumSquares<R>,
         Squared{from, elements}, parts);
  launch(stream, {1, 1, kDealThreads}, addParts,
         static_cast<const DeviceLongSum *>(parts), blocks, to);
}

/// The same of many tensors.
template <typename R>
void squareSum(cudaStream_t stream, const Deal<Squared> &all, DeviceLongSum *to,
               void *scratch) {
  auto *parts = static_cast<DeviceLongSum *>(scratch);
  launch(stream, {all.blocks, 1, kDealThreads}, sumManySquares<R>, all, parts);
  launch(stream, {1, 1, kDealThreads}, addParts,
         static_cast<const DeviceLongSum *>(parts), all.blocks, to);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH

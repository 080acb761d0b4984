//===- column_sums.cuh - Sums over samples and positions --------*- C++ -*-===//
//
// Sums of columns over rows that belong to samples. Each sample is cut into the
// same pieces, each piece summed by one block in one order; a sample's pieces
// are added up, then the samples, one after another: what one sample gives does
// not depend on how many there are.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_COLUMN_SUMS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_COLUMN_SUMS_CUH

#include <algorithm>

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kSumRows = 8;        ///< threads along rows
inline constexpr std::int64_t kPieceRows = 64; ///< of a piece, at most

/// What is summed: samples of so many rows of so many columns.
struct ColumnSizes {
  std::int64_t samples = 1, rows = 1, columns = 1;

  __host__ __device__ std::int64_t pieces() const {
    return (rows + kPieceRows - 1) / kPieceRows;
  }
  /// Numbers that partSums writes, for each of its sums.
  __host__ __device__ std::int64_t parts() const {
    return samples * pieces() * columns;
  }
};

/// Blocks of kWarp columns and kSumRows threads along rows; blockIdx.x:
/// columns, blockIdx.y: pieces of all samples, by turns. `term(row, column,
/// terms)` says what to add to each of the sums.
template <typename R, int Sums, typename Term>
__global__ void partSums(ColumnSizes sizes, R *parts, Term term) {
  __shared__ R threads[Sums][kSumRows][kWarp];
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const std::int64_t pieces = sizes.pieces();
  for (std::int64_t part = blockIdx.y; part < sizes.samples * pieces;
       part += gridDim.y) {
    const std::int64_t sample = part / pieces, piece = part % pieces;
    const std::int64_t first = piece * kPieceRows;
    const std::int64_t last =
        first + kPieceRows < sizes.rows ? first + kPieceRows : sizes.rows;
    Several<R, Sums> sums{};
    if (column < sizes.columns)
      for (std::int64_t row = first + threadIdx.y; row < last; row += kSumRows)
        term(sample * sizes.rows + row, column, sums);
#pragma unroll
    for (int s = 0; s < Sums; ++s)
      threads[s][threadIdx.y][threadIdx.x] = sums[s];
    __syncthreads();
    if (threadIdx.y == 0 && column < sizes.columns)
      for (int s = 0; s < Sums; ++s) {
        R sum = R(0);
        for (unsigned y = 0; y < kSumRows; ++y)
          sum += threads[s][y][threadIdx.x];
        parts[s * sizes.parts() + part * sizes.columns + column] = sum;
      }
    __syncthreads(); // before the next piece is there
  }
}

/// A thread for each column of each sum; blockIdx.y: the sum.
/// \param adds  to what is there
template <typename R, int Sums>
__global__ void sampleSums(ColumnSizes sizes, const R *parts,
                           Several<Result, Sums> to, bool adds) {
  const std::int64_t column =
      std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= sizes.columns)
    return;
  const int s = static_cast<int>(blockIdx.y);
  const R *part = parts + s * sizes.parts() + column;
  R all = R(0);
  for (std::int64_t sample = 0; sample < sizes.samples; ++sample) {
    R sum = R(0);
    for (std::int64_t piece = 0; piece < sizes.pieces(); ++piece) {
      sum += *part;
      part += sizes.columns;
    }
    all += sum;
  }
  if (adds)
    all = loadOne<R>({to[s].data, to[s].type}, column) + all;
  storeOne(to[s], column, all);
}

/// Bytes of scratch for `sums` of them.
template <typename R>
std::size_t columnScratch(const ColumnSizes &sizes, int sums) {
  return static_cast<std::size_t>(sums * sizes.parts()) * sizeof(R);
}

/// Queues both. \p parts  of columnScratch bytes; \p adds  to what is there
template <typename R, int Sums, typename Term>
void sumColumns(cudaStream_t stream, const ColumnSizes &sizes, R *parts,
                const Several<Result, Sums> &to, const Term &term,
                bool adds = false) {
  constexpr std::int64_t kMostY = 65535;
  launch(stream,
         {blocksFor(sizes.columns, kWarp),
          std::min(sizes.samples * sizes.pieces(), kMostY), kWarp, kSumRows},
         partSums<R, Sums, Term>, sizes, parts, term);
  constexpr unsigned kThreads = 128;
  launch(stream, {blocksFor(sizes.columns, kThreads), Sums, kThreads},
         sampleSums<R, Sums>, sizes, static_cast<const R *>(parts), to, adds);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_COLUMN_SUMS_CUH

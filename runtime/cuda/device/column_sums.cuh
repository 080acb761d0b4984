//===- column_sums.cuh - Sums over samples and positions --------*- C++ -*-===//
//
// Sums of columns over rows that belong to samples. Each sample is cut into the
// same pieces, each piece summed by one block in one order; a sample's pieces
// are added up in one order, then the samples, one after another: what one
// sample gives does not depend on how many there are.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_COLUMN_SUMS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_COLUMN_SUMS_CUH

#include <algorithm>

#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kSumRows = 8;        ///< threads along rows
inline constexpr std::int64_t kPieceRows = 64; ///< of a piece, at most

/// What is summed: samples of so many rows of so many columns.
struct ColumnSizes {
  std::int64_t samples = 1, rows = 1, columns = 1;
  std::int64_t pieceRows = kPieceRows;

  __host__ __device__ std::int64_t pieces() const {
    return (rows + pieceRows - 1) / pieceRows;
  }
  /// Rows of a piece of a sample, [first, last).
  __host__ __device__ std::int64_t firstRow(std::int64_t piece) const {
    return piece * pieceRows;
  }
  __host__ __device__ std::int64_t lastRow(std::int64_t piece) const {
    return piece + 1 < pieces() ? firstRow(piece + 1) : rows;
  }
  /// Numbers that pieces give, for each of their sums.
  __host__ __device__ std::int64_t parts() const {
    return samples * pieces() * columns;
  }
};

/// Blocks of kWarp packs of columns and kSumRows threads along rows;
/// blockIdx.x: columns, blockIdx.y: pieces of all samples, by turns.
/// `term(row, column, count, sums)` adds what a pack of a row has.
template <typename R, typename Term>
__global__ void partSums(ColumnSizes sizes, R *parts, Term term) {
  constexpr int kColumns = kWarp * kPack;
  __shared__ R threads[kSumRows][kColumns];
  const std::int64_t start = std::int64_t{blockIdx.x} * kColumns;
  const std::int64_t column = start + threadIdx.x * kPack;
  const std::int64_t pieces = sizes.pieces();
  for (std::int64_t part = blockIdx.y; part < sizes.samples * pieces;
       part += gridDim.y) {
    const std::int64_t sample = part / pieces, piece = part % pieces;
    const std::int64_t last = sizes.lastRow(piece);
    R sums[kPack] = {};
    if (column < sizes.columns) {
      const int count = packAt(column, sizes.columns);
#pragma unroll 4
      for (std::int64_t row = sizes.firstRow(piece) + threadIdx.y; row < last;
           row += kSumRows)
        term(sample * sizes.rows + row, column, count, sums);
    }
    for (int i = 0; i < kPack; ++i)
      threads[threadIdx.y][threadIdx.x * kPack + i] = sums[i];
    __syncthreads();
    for (std::int64_t i = threadIdx.y * kWarp + threadIdx.x; i < kColumns;
         i += kSumRows * kWarp)
      if (start + i < sizes.columns) {
        R sum = R(0);
        for (unsigned y = 0; y < kSumRows; ++y)
          sum += threads[y][i];
        parts[part * sizes.columns + start + i] = sum;
      }
    __syncthreads(); // before the next piece is there
  }
}

inline constexpr int kSumLanes = 32; ///< of threads that add up pieces

/// Of those, how many share the pieces of one sample: a divisor of kSumLanes.
inline __host__ __device__ int lanesOfSample(std::int64_t pieces) {
  constexpr int kPiecesOfLane = 8;
  int lanes = 1;
  while (lanes < kSumLanes && lanes * kPiecesOfLane < pieces)
    lanes *= 2;
  return lanes;
}

/// Blocks of kWarp columns and kSumLanes lanes; blockIdx.y: the sum.
/// \param adds  to what is there
template <typename R, int Sums>
__global__ void __launch_bounds__(kWarp *kSumLanes)
    sampleSums(ColumnSizes sizes, const R *parts, Several<Result, Sums> to,
               bool adds) {
  __shared__ R lanes[kSumLanes][kWarp];
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const bool isThere = column < sizes.columns;
  const int which = static_cast<int>(blockIdx.y);
  const std::int64_t pieces = sizes.pieces();
  const int sharing = lanesOfSample(pieces), together = kSumLanes / sharing;
  const int own = static_cast<int>(threadIdx.y) / sharing,
            lane = static_cast<int>(threadIdx.y) % sharing;
  R all = R(0);
  for (std::int64_t first = 0; first < sizes.samples; first += together) {
    R sum = R(0);
    if (isThere && first + own < sizes.samples) {
      const R *part = parts + which * sizes.parts() +
                      (first + own) * pieces * sizes.columns + column;
#pragma unroll 8
      for (std::int64_t piece = lane; piece < pieces; piece += sharing)
        sum += part[piece * sizes.columns];
    }
    lanes[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0)
      for (int s = 0; s < together && first + s < sizes.samples; ++s) {
        R ofSample = R(0);
        for (int l = 0; l < sharing; ++l)
          ofSample += lanes[s * sharing + l][threadIdx.x];
        all += ofSample;
      }
    __syncthreads(); // before the next samples are there
  }
  if (threadIdx.y != 0 || !isThere)
    return;
  if (adds)
    all = loadOne<R>({to[which].data, to[which].type}, column) + all;
  storeOne(to[which], column, all);
}

/// Bytes of scratch for `sums` of them.
template <typename R>
std::size_t columnScratch(const ColumnSizes &sizes, int sums) {
  return static_cast<std::size_t>(sums * sizes.parts()) * sizeof(R);
}

/// Queues the second half. \param adds  to what is there
template <typename R, int Sums>
void addPieces(cudaStream_t stream, const ColumnSizes &sizes, const R *parts,
               const Several<Result, Sums> &to, bool adds = false) {
  launch(stream, {blocksFor(sizes.columns, kWarp), Sums, kWarp, kSumLanes},
         sampleSums<R, Sums>, sizes, parts, to, adds);
}

/// Queues both. \param parts  of columnScratch bytes
template <typename R, typename Term>
void sumColumns(cudaStream_t stream, const ColumnSizes &sizes, R *parts,
                const Result &to, const Term &term, bool adds = false) {
  constexpr std::int64_t kMostY = 65535;
  launch(stream,
         {blocksFor(sizes.columns, kWarp * kPack),
          std::min(sizes.samples * sizes.pieces(), kMostY), kWarp, kSumRows},
         partSums<R, Term>, sizes, parts, term);
  addPieces<R, 1>(stream, sizes, parts, {{to}}, adds);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_COLUMN_SUMS_CUH

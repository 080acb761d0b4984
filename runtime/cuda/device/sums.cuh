//===- sums.cuh - Sums of columns and of squares ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH

#include <algorithm>

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kSumRows = 8;        ///< threads per column
inline constexpr std::int64_t kPieceRows = 64; ///< rows per piece

/// Holds the sizes of column sums, which add the rows of a tensor
/// [samples][rows][columns]. Each sample is divided into pieces of pieceRows
/// rows, and one block sums each piece. Then the pieces of a sample are added,
/// and then the samples, both in a fixed order. The contribution of a sample
/// therefore does not depend on the number of samples.
struct ColumnSizes {
  std::int64_t samples = 1, rows = 1, columns = 1;
  std::int64_t pieceRows = kPieceRows;

  __host__ __device__ std::int64_t pieces() const {
    return (rows + pieceRows - 1) / pieceRows;
  }
  /// Returns the first row of a piece (firstRow), or the row after its last row
  /// (lastRow).
  __host__ __device__ std::int64_t firstRow(std::int64_t piece) const {
    return piece * pieceRows;
  }
  __host__ __device__ std::int64_t lastRow(std::int64_t piece) const {
    return piece + 1 < pieces() ? firstRow(piece + 1) : rows;
  }
  /// Returns the number of partial sums per result.
  __host__ __device__ std::int64_t parts() const {
    return samples * pieces() * columns;
  }
};

/// Describes a tensor whose columns are summed, with rows of `width` elements.
struct SumTerm {
  Operand from;
  std::int64_t width;
};

/// Adds rows `row`, `row` + kSumRows and so on below `last` of the sample that
/// begins at row `start` of the tensor. `term(row, column, count, sums)` adds a
/// pack of a row.
template <typename R, typename Term>
__device__ void addRowsOf(const Term &term, std::int64_t start,
                          std::int64_t row, std::int64_t last,
                          std::int64_t column, int count, R (&sums)[kPack]) {
  for (; row < last; row += kSumRows)
    term(start + row, column, count, sums);
}

/// Adds the rows of a tensor. The loads of several rows overlap in time.
template <typename R>
__device__ void addRowsOf(const SumTerm &term, std::int64_t start,
                          std::int64_t row, std::int64_t last,
                          std::int64_t column, int count, R (&sums)[kPack]) {
  constexpr int kAtOnce = 4;
  for (; row < last; row += kAtOnce * kSumRows) {
    HeldPack<R> held[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (row + i * kSumRows < last)
        held[i].load(term.from,
                     (start + row + i * kSumRows) * term.width + column, count);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (row + i * kSumRows < last) {
        R values[kPack];
        held[i].widen(term.from.type, values);
#pragma unroll
        for (int e = 0; e < kPack; ++e)
          sums[e] += values[e];
      }
  }
}

/// Sums each piece of each sample. A block has kSumRows threads for each of
/// kWarp packs of columns; blockIdx.x selects the columns, and blockIdx.y
/// selects every gridDim.y-th piece of all samples.
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
    if (column < sizes.columns)
      addRowsOf(term, sample * sizes.rows, sizes.firstRow(piece) + threadIdx.y,
                last, column, packAt(column, sizes.columns), sums);
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
    __syncthreads(); // the next piece overwrites `threads`
  }
}

inline constexpr int kSumLanes = 32; ///< threads of sampleSums per column

/// Returns how many of kSumLanes lanes add the pieces of one sample. The number
/// divides kSumLanes.
inline __host__ __device__ int lanesOfSample(std::int64_t pieces) {
  constexpr int kPiecesOfLane = 8;
  int lanes = 1;
  while (lanes < kSumLanes && lanes * kPiecesOfLane < pieces)
    lanes *= 2;
  return lanes;
}

/// Adds the pieces of each sample, and then the samples. A block has kSumLanes
/// threads for each of kWarp columns; blockIdx.y selects the result.
/// \param adds  whether to add to the contents of `to`
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
    __syncthreads(); // the next samples overwrite `lanes`
  }
  if (threadIdx.y != 0 || !isThere)
    return;
  if (adds)
    all = loadOne<R>({to[which].data, to[which].type}, column) + all;
  storeOne(to[which], column, all);
}

/// Returns the bytes of scratch memory that `sums` results need.
template <typename R>
std::size_t columnScratch(const ColumnSizes &sizes, int sums) {
  return static_cast<std::size_t>(sums * sizes.parts()) * sizeof(R);
}

template <typename R, int Sums>
void addPieces(cudaStream_t stream, const ColumnSizes &sizes, const R *parts,
               const Several<Result, Sums> &to, bool adds = false) {
  launch(stream, {blocksFor(sizes.columns, kWarp), Sums, kWarp, kSumLanes},
         sampleSums<R, Sums>, sizes, parts, to, adds);
}

/// \param parts  scratch memory of columnScratch bytes
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

/// Queues the sums of all columns. If `adds`, the sums are added to the
/// contents of `to`.
template <typename R>
void sum(cudaStream_t stream, const Operand &from, const Result &to,
         const ColumnSizes &sizes, void *scratch, bool adds = false) {
  sumColumns<R>(stream, sizes, static_cast<R *>(scratch), to,
                SumTerm{from, sizes.columns}, adds);
}

/// Adds the sums of all threads in a binary tree. The result is valid on thread
/// 0.
inline __device__ DeviceLongSum longSumOverBlock(const DeviceLongSum &mine) {
  __shared__ DeviceLongSum threads[kListThreads];
  threads[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned apart = kListThreads / 2; apart > 0; apart /= 2) {
    if (threadIdx.x < apart)
      threads[threadIdx.x].add(threads[threadIdx.x + apart]);
    __syncthreads();
  }
  return threads[0];
}

struct Squared {
  Operand from;
  std::int64_t elements;
};

/// Sums the squares of a piece in one block. The result is valid on thread 0.
template <typename R>
__device__ DeviceLongSum squaresOf(const Squared &one, std::int64_t piece) {
  DeviceLongSum sum{0.0, 0.0};
  packsOfPiece(piece, one.elements, [&](std::int64_t first, int count) {
    R x[kPack];
    load(one.from, first, count, x);
#pragma unroll
    for (int i = 0; i < kPack; ++i) // load() sets the rest to zero
      sum.addSquare(x[i]);
  });
  return longSumOverBlock(sum);
}

/// Sums the squares of one piece per block.
template <typename R>
__global__ void sumSquares(Squared one, DeviceLongSum *parts) {
  const DeviceLongSum sum = squaresOf<R>(one, blockIdx.x);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

template <typename R>
__global__ void sumManySquares(TensorList<Squared> all, DeviceLongSum *parts) {
  const Share share = all.shares[blockIdx.x];
  const DeviceLongSum sum = squaresOf<R>(all.items[share.tensor], share.piece);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

/// Adds partial sums to `to` in one block. The function is a template only to
/// avoid warnings in files that do not use it.
template <typename Partial>
__global__ void addParts(const Partial *parts, std::int64_t count,
                         Partial *to) {
  Partial sum{0.0, 0.0};
  for (std::int64_t i = threadIdx.x; i < count; i += kListThreads)
    sum.add(parts[i]);
  sum = longSumOverBlock(sum);
  if (threadIdx.x == 0)
    to->add(sum);
}

/// Returns the scratch memory of squareSum in bytes.
inline std::size_t squareSumScratch(std::int64_t elements) {
  return static_cast<std::size_t>(blocksFor(elements, kListPiece)) *
         sizeof(DeviceLongSum);
}
inline std::size_t squareSumScratch(const TensorList<Squared> &all) {
  return static_cast<std::size_t>(all.blocks) * sizeof(DeviceLongSum);
}

/// Queues the addition of a tensor's squares to `to`.
template <typename R>
void squareSum(cudaStream_t stream, const Operand &from, DeviceLongSum *to,
               std::int64_t elements, void *scratch) {
  const std::int64_t blocks = blocksFor(elements, kListPiece);
  auto *parts = static_cast<DeviceLongSum *>(scratch);
  launch(stream, {blocks, 1, kListThreads}, sumSquares<R>,
         Squared{from, elements}, parts);
  launch(stream, {1, 1, kListThreads}, addParts<DeviceLongSum>,
         static_cast<const DeviceLongSum *>(parts), blocks, to);
}

template <typename R>
void squareSum(cudaStream_t stream, const TensorList<Squared> &all,
               DeviceLongSum *to, void *scratch) {
  auto *parts = static_cast<DeviceLongSum *>(scratch);
  launch(stream, {all.blocks, 1, kListThreads}, sumManySquares<R>, all, parts);
  launch(stream, {1, 1, kListThreads}, addParts<DeviceLongSum>,
         static_cast<const DeviceLongSum *>(parts), all.blocks, to);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_SUMS_CUH

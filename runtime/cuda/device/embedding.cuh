//===- embedding.cuh - Lookups, and their gradients -------------*- C++ -*-===//
//
// Gradients are summed without atomics: tokens are put in the order of their
// rows and places, and one block adds up the tokens of one row of the table,
// sample by sample.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH

#include <algorithm>

#include "runtime/cuda/device/column_sums.cuh"
#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kEmbeddingThreads = 256;

/// The rows of the table that are here.
struct HeldRows {
  std::int64_t offset, count;

  /// Of a token, or -1.
  __device__ std::int64_t row(std::int32_t id) const {
    const std::int64_t at = std::int64_t{id} - offset;
    return at >= 0 && at < count ? at : -1;
  }
};

struct LookupSource {
  const std::int32_t *ids;
  HeldRows held;
  __device__ SourceRows operator()(std::int64_t token) const {
    return {held.row(ids[token]), -1};
  }
};

/// A token that knows its row; those of other ranks come last.
struct Placed {
  std::int64_t row, token;
};

/// A thread for each token counts those that come before it. Of the square of
/// their number, but an operation each: a fraction of a millisecond for 64 Ki
/// tokens, and one launch.
static __global__ void sortTokens(const std::int32_t *ids, std::int64_t tokens,
                                  HeldRows held, Placed *sorted) {
  __shared__ std::int64_t rows[kEmbeddingThreads];
  const std::int64_t mine =
      std::int64_t{blockIdx.x} * kEmbeddingThreads + threadIdx.x;
  auto rowOf = [&](std::int64_t token) {
    const std::int64_t row = token < tokens ? held.row(ids[token]) : -1;
    return row < 0 ? held.count : row;
  };
  const std::int64_t row = rowOf(mine);
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < tokens; first += kEmbeddingThreads) {
    __syncthreads(); // who reads those before has done so
    rows[threadIdx.x] = rowOf(first + threadIdx.x);
    __syncthreads();
    const std::int64_t count = tokens - first < kEmbeddingThreads
                                   ? tokens - first
                                   : std::int64_t{kEmbeddingThreads};
    for (std::int64_t i = 0; i < count; ++i)
      before += rows[i] < row || (rows[i] == row && first + i < mine) ? 1 : 0;
  }
  if (mine < tokens)
    sorted[before] = {row, mine};
}

/// A block for each token: the first of its row adds up all of them.
template <typename R>
__global__ void sumTokens(Operand from, Result to, const Placed *sorted,
                          std::int64_t tokens, std::int64_t ofSample,
                          HeldRows held, std::int64_t width) {
  const std::int64_t first = blockIdx.x;
  const std::int64_t row = sorted[first].row;
  if (row >= held.count || (first > 0 && sorted[first - 1].row == row))
    return;
  packsOfRow(width, [&](std::int64_t h, int count) {
    R sum[kPack] = {}, term[kPack], x[kPack];
    std::int64_t i = first;
    while (i < tokens && sorted[i].row == row) {
      const std::int64_t sample = sorted[i].token / ofSample;
      for (int e = 0; e < kPack; ++e)
        term[e] = R(0);
      for (; i < tokens && sorted[i].row == row &&
             sorted[i].token / ofSample == sample;
           ++i) {
        load(from, sorted[i].token * width + h, count, x);
        for (int e = 0; e < kPack; ++e)
          term[e] += x[e];
      }
      for (int e = 0; e < kPack; ++e)
        sum[e] += term[e];
    }
    store(to, row * width + h, count, sum);
  });
}

template <typename R> struct TokenTerm {
  Operand from;
  const std::int32_t *ids;
  HeldRows held;
  std::int64_t row, width;
  __device__ void operator()(std::int64_t token, std::int64_t column, int count,
                             R (&sums)[kPack]) const {
    if (held.row(ids[token]) == row)
      addPack(from, token * width + column, count, sums);
  }
};

template <typename R>
void embedding(cudaStream_t stream, const std::int32_t *ids,
               const Operand &table, const Result &to, std::int64_t tokens,
               std::int64_t width, const HeldRows &held) {
  gather<R>(stream, table, kNone, to, tokens, width, LookupSource{ids, held});
}

/// Tables of so few rows (types of tokens) that one block a row would have all
/// tokens to add up: the gradients are read once for each row.
inline bool hasFewRows(const HeldRows &held) {
  constexpr std::int64_t kFew = 4;
  return held.count <= kFew;
}

/// \param sizes  samples of tokens of features
template <typename R>
std::size_t embeddingGradScratch(const ColumnSizes &sizes,
                                 const HeldRows &held) {
  return hasFewRows(held)
             ? columnScratch<R>(sizes, 1)
             : static_cast<std::size_t>(sizes.samples * sizes.rows) *
                   sizeof(Placed);
}

template <typename R>
void embeddingGrad(cudaStream_t stream, const std::int32_t *ids,
                   const Operand &above, const Result &to,
                   const ColumnSizes &sizes, const HeldRows &held,
                   void *scratch) {
  const std::int64_t width = sizes.columns, tokens = sizes.samples * sizes.rows;
  const std::int64_t rowBytes = width * bytesOf(to.type);
  if (hasFewRows(held)) {
    for (std::int64_t row = 0; row < held.count; ++row)
      sumColumns<R>(
          stream, sizes, static_cast<R *>(scratch),
          {static_cast<std::byte *>(to.data) + row * rowBytes, to.type},
          TokenTerm<R>{above, ids, held, row, width});
    return;
  }
  MTPLAN_CUDA(cudaMemsetAsync(
      to.data, 0, static_cast<std::size_t>(held.count * rowBytes), stream));
  auto *sorted = static_cast<Placed *>(scratch);
  launch(stream, {blocksFor(tokens, kEmbeddingThreads), 1, kEmbeddingThreads},
         sortTokens, ids, tokens, held, sorted);
  launch(stream, {tokens, 1, threadsOfRow(width, kEmbeddingThreads)},
         sumTokens<R>, above, to, static_cast<const Placed *>(sorted), tokens,
         sizes.rows, held, width);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH

//===- embedding.cuh - Embeddings and their gradients -----------*- C++ -*-===//
//
// Gradients are summed without atomics, so that their order is fixed: tokens
// are sorted by table row and position, and one block adds the tokens of a row,
// one sample after another.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH

#include <algorithm>

#include "runtime/cuda/device/elements.cuh"
#include "runtime/cuda/device/sums.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kEmbeddingThreads = 256;

/// The rows of the table that this rank holds.
struct HeldRows {
  std::int64_t offset, count;

  /// Returns the local row of a token id, or -1 if another rank holds it.
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

/// A token and its local row, or HeldRows::count if another rank holds its row.
struct Placed {
  std::int64_t row, token;
};

/// Sorts tokens by row in a single launch: a thread per token counts the tokens
/// before it. This takes O(tokens^2) comparisons, a fraction of a millisecond
/// for 64 Ki tokens.
static __global__ void sortTokens(const std::int32_t *ids, std::int64_t tokens,
                                  HeldRows held, Placed *sorted) {
  __shared__ std::int64_t rows[kEmbeddingThreads];
  const std::int64_t mine = threadOfGrid();
  auto rowOf = [&](std::int64_t token) {
    const std::int64_t row = token < tokens ? held.row(ids[token]) : -1;
    return row < 0 ? held.count : row;
  };
  const std::int64_t row = rowOf(mine);
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < tokens; first += kEmbeddingThreads) {
    __syncthreads(); // all threads have read the previous rows
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

/// Sums the gradients of tokens by row. There is a block per sorted token; the
/// block of the first token of a row adds all tokens of the row.
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

/// Adds the gradient of a token to the sums of one table row (for sumColumns).
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

/// Queues the lookup of tokens; rows of other ranks yield zeros.
template <typename R>
void embedding(cudaStream_t stream, const std::int32_t *ids,
               const Operand &table, const Result &to, std::int64_t tokens,
               std::int64_t width, const HeldRows &held) {
  gather<R>(stream, table, kNone, to, tokens, width, LookupSource{ids, held});
}

/// Returns whether a table has very few rows, like a table of token types. A
/// single block per row would be slow, so all blocks read all gradients once
/// per row.
inline bool hasFewRows(const HeldRows &held) {
  constexpr std::int64_t kFew = 4;
  return held.count <= kFew;
}

/// Returns the scratch memory of embeddingGrad in bytes.
/// \param sizes  [samples, tokens, features]
template <typename R>
std::size_t embeddingGradScratch(const ColumnSizes &sizes,
                                 const HeldRows &held) {
  return hasFewRows(held)
             ? columnScratch<R>(sizes, 1)
             : static_cast<std::size_t>(sizes.samples * sizes.rows) *
                   sizeof(Placed);
}

/// Queues the gradient of the rows of the table that this rank holds.
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
  launch(stream, gridOf(tokens, kEmbeddingThreads), sortTokens, ids, tokens,
         held, sorted);
  launch(stream, {tokens, 1, threadsOfRow(width, kEmbeddingThreads)},
         sumTokens<R>, above, to, static_cast<const Placed *>(sorted), tokens,
         sizes.rows, held, width);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH

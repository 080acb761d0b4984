//===- embedding.cuh - Embeddings and their gradients -----------*- C++ -*-===//
//
// Gradients are summed without atomics, so that their order is fixed: tokens
// are sorted by table row and position. The warps of a block share the tokens
// that a sample has for a table row: each warp adds every kTokenWarps-th token.
// The sums of the warps are then added, and then the sums of the samples. The
// contribution of a sample therefore does not depend on the number of samples.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH

#include <algorithm>

#include "runtime/cuda/device/elements.cuh"
#include "runtime/cuda/device/sums.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kSortWarps = 8; ///< warps per block of sortTokens
inline constexpr int kTokenWarps = 16;    ///< warps per block of sumTokens

struct HeldRows {
  std::int64_t offset, count;

  /// Returns the local row of a token id, or -1 if another rank holds the row.
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

/// Stands for the row of a token if another rank holds the row.
inline constexpr std::uint32_t kHeldElsewhere = 1U << 31;

/// Holds a sorted token and its local row. `end` is the index in sorted order
/// after the last token with the same row and sample.
struct Placed {
  std::uint32_t row;
  std::int32_t token, end;
};

/// Sorts tokens by row in a single launch. Each lane counts the tokens that
/// precede one token in sorted order, and the warps of a block share the tokens
/// to compare with. This takes O(tokens^2) comparisons, about a millisecond for
/// 64 Ki tokens.
/// \param ofSample  the number of tokens per sample
static __global__ void sortTokens(const std::int32_t *ids, std::int64_t tokens,
                                  std::int64_t ofSample, HeldRows held,
                                  Placed *sorted) {
  constexpr int kThreads = kSortWarps * kWarp;
  __shared__ std::uint32_t rows[kThreads];
  __shared__ int befores[kSortWarps][kWarp], ends[kSortWarps][kWarp];
  const int lane = static_cast<int>(threadIdx.x),
            warp = static_cast<int>(threadIdx.y);
  auto rowOf = [&](std::int64_t token) {
    const std::int64_t row = held.row(ids[token]);
    return row < 0 ? kHeldElsewhere : static_cast<std::uint32_t>(row);
  };
  const std::int64_t mine = std::int64_t{blockIdx.x} * kWarp + lane;
  const std::int64_t next = (mine / ofSample + 1) * ofSample;
  const std::uint32_t row = mine < tokens ? rowOf(mine) : 0;
  int before = 0, end = 0;
  for (std::int64_t first = 0; first < tokens; first += kThreads) {
    const std::int64_t other = first + warp * kWarp + lane;
    __syncthreads(); // all threads have read the previous rows
    // Smaller rows come first, and equal rows are in the order of tokens.
    // Tokens that do not exist have the row ~0, which is above all rows, and
    // are not counted.
    rows[warp * kWarp + lane] = other < tokens ? rowOf(other) : ~0U;
    __syncthreads();
    const int toMine = static_cast<int>(mine - first),
              toNext = static_cast<int>(next - first);
#pragma unroll
    for (int l = 0; l < kWarp; ++l) {
      const int i = warp * kWarp + l;
      before += (i < toMine ? rows[i] <= row : rows[i] < row) ? 1 : 0;
      end += (i < toNext ? rows[i] <= row : rows[i] < row) ? 1 : 0;
    }
  }
  befores[warp][lane] = before;
  ends[warp][lane] = end;
  __syncthreads();
  if (warp != 0 || mine >= tokens)
    return;
  for (unsigned w = 1; w < kSortWarps; ++w) {
    before += befores[w][lane];
    end += ends[w][lane];
  }
  sorted[before] = {row, static_cast<std::int32_t>(mine), end};
}

/// Sums the gradients of tokens by row. There is a warp per sorted token, and
/// blockIdx.y selects the columns. The warp of a row's first token adds the
/// row's tokens if there are at most kTokenWarps; otherwise all warps of the
/// block add the tokens. Both ways compute the same bits for a sample with at
/// most kTokenWarps tokens of the row.
template <typename R>
__global__ void __launch_bounds__(kWarp *kTokenWarps, sizeof(R) == 4 ? 2 : 1)
    sumTokens(Operand from, Result to, const Placed *sorted,
              std::int32_t tokens, std::int64_t width) {
  constexpr int kColumns = kWarp * kPack;
  __shared__ R warps[kTokenWarps][kColumns];
  __shared__ std::int32_t longRow; // first sorted token of the row, or -1
  const int lane = static_cast<int>(threadIdx.x),
            warp = static_cast<int>(threadIdx.y);
  const std::int64_t start = std::int64_t{blockIdx.y} * kColumns,
                     column = start + lane * kPack;
  const int count = column < width ? packAt(column, width) : 0;
  auto isOfRow = [&](std::int32_t i, std::uint32_t row) {
    return i >= 0 && i < tokens && sorted[i].row == row;
  };

  const auto mine =
      static_cast<std::int32_t>(blockIdx.x * kTokenWarps + threadIdx.y);
  std::uint32_t row = mine < tokens ? sorted[mine].row : kHeldElsewhere;
  const bool begins = row != kHeldElsewhere && !isOfRow(mine - 1, row);
  const bool isLong = begins && isOfRow(mine + kTokenWarps, row);
  if (begins && !isLong) {
    R sums[kPack] = {};
    for (std::int32_t i = mine; isOfRow(i, row);) {
      R sample[kPack] = {};
      for (const std::int32_t end = sorted[i].end; i < end; ++i)
        addPack(from, sorted[i].token * width + column, count, sample);
#pragma unroll
      for (int e = 0; e < kPack; ++e)
        sums[e] += sample[e];
    }
    store(to, row * width + column, count, sums);
  }

  if (warp == 0 && lane == 0)
    longRow = -1;
  __syncthreads();
  // At most one long row begins in a block, because a long row has more tokens
  // than a block has warps.
  if (isLong && lane == 0)
    longRow = mine;
  __syncthreads();
  if (longRow < 0)
    return;
  row = sorted[longRow].row;
  const int own = warp * kWarp + lane; // the column that this thread adds
  R sum = R(0);
  for (std::int32_t first = longRow; isOfRow(first, row);) {
    const std::int32_t end = sorted[first].end;
    R mySum[kPack] = {};
    constexpr int kTogether = sizeof(R) == 4 ? 4 : 2; // loads at a time
    for (std::int32_t i = first + warp; i < end; i += kTogether * kTokenWarps) {
      std::int64_t firsts[kTogether];
      int counts[kTogether];
      R terms[kTogether][kPack];
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {
        const std::int32_t at = i + t * kTokenWarps;
        counts[t] = at < end ? count : 0;
        firsts[t] = at < end ? sorted[at].token * width + column : 0;
      }
      loadPacks(from, firsts, counts, terms);
#pragma unroll
      for (int t = 0; t < kTogether; ++t)
#pragma unroll
        for (int e = 0; e < kPack; ++e)
          mySum[e] += terms[t][e];
    }
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      warps[warp][lane * kPack + e] = mySum[e];
    __syncthreads();
    if (own < kColumns) {
      R sample = R(0);
#pragma unroll
      for (int w = 0; w < kTokenWarps; ++w)
        sample += warps[w][own];
      sum += sample;
    }
    __syncthreads(); // the next sample overwrites `warps`
    first = end;
  }
  if (own < kColumns && start + own < width)
    storeOne(to, row * width + start + own, sum);
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

/// Returns whether a table has very few rows, like a table of token types. For
/// such a table, a single block per row would be slow, so all blocks together
/// read all gradients once per row.
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
  launch(stream, {blocksFor(tokens, kWarp), 1, kWarp, kSortWarps}, sortTokens,
         ids, tokens, sizes.rows, held, sorted);
  launch(stream,
         {blocksFor(tokens, kTokenWarps), blocksFor(width, kWarp * kPack),
          kWarp, kTokenWarps},
         sumTokens<R>, above, to, static_cast<const Placed *>(sorted),
         static_cast<std::int32_t>(tokens), width);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_EMBEDDING_CUH

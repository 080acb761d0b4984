//===- attention_grad.cuh - Gradients of attention --------------*- C++ -*-===//
//
// Probabilities are recomputed from the log-sum-exp of each row. On tensor
// cores, attention_grad_cores.cuh computes the gradients. Otherwise two kernels
// compute the gradients, so that every sum has a fixed order without atomics:
// one kernel computes the gradients of queries per tile of queries, and the
// other computes the gradients of keys and values per tile of keys. The
// gradient of the bias table is summed along each diagonal of the scores, on
// which the distance of query and key is constant. The diagonals are then
// summed by row of the table.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_GRAD_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_GRAD_CUH

#include "runtime/cuda/device/attention_grad_cores.cuh"
#include "runtime/cuda/device/block_sum.cuh"

namespace mtplan::runtime::cuda {

inline constexpr int kDiagonals = 2 * kTile - 1; ///< diagonals of a tile

/// Holds the operands of the gradient; `above` is the gradient of the result.
struct GradOperands {
  Operand query, key, value, above;
};

/// Computes the probabilities of a tile after dropout (`shares`), and the
/// gradients of its scores (`slopes`). Both are zero for keys that a query does
/// not attend to, and for queries that do not exist.
template <typename R>
__device__ void slopesOf(const GradOperands &from, const RowNumbers<R> *numbers,
                         const Heads &all, const Mask &mask, std::int64_t b,
                         std::int64_t head, std::int64_t firstQuery,
                         std::int64_t firstKey, Tile<R> &left, Tile<R> &right,
                         Tile<R> &slopes, Tile<R> &shares) {
  const std::int64_t keyHead = head / all.ofHead();
  R scores[kRows] = {}, above[kRows] = {};
  addProducts(queryRows(all, from.query, b, head, firstQuery),
              keyRows(all, from.key, b, keyHead, firstKey), all.width, left,
              right, scores);
  addProducts(queryRows(all, from.above, b, head, firstQuery),
              keyRows(all, from.value, b, keyHead, firstKey), all.width, left,
              right, above);
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned row = threadIdx.x / kWarp * kRows;
  const std::int64_t k = firstKey + lane;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t s = firstQuery + row + r;
    R slope = R(0), share = R(0);
    if (s < all.queries && k < all.visible(s)) {
      const RowNumbers<R> its = numbers[all.keptAt(b, head, s)];
      const R score = all.score(scores[r], head, s, k);
      share = exp(score - its.lse);
      const R kept =
          mask.drops() ? mask.at<R>(all.maskAt(b, head, s, k)) : R(1);
      slope =
          share * (above[r] * kept - its.projection) * scoreSlope(all, score);
      share *= kept;
    }
    slopes[row + r][lane] = slope;
    shares[row + r][lane] = share;
  }
}

template <typename R> __device__ void fill(R (&factors)[kRows], R value) {
  for (int r = 0; r < kRows; ++r)
    factors[r] = value;
}

/// Computes the gradients of queries. A block processes a tile of queries of
/// one head and sample.
/// \param diagonals  receives the sums of diagonals; must hold (keyTiles + 1) *
/// kTile zeros per block, or be null
template <typename R, int Widths>
__global__ void __launch_bounds__(kTileThreads)
    queryGrad(GradOperands from, const RowNumbers<R> *numbers, Heads all,
              Masks masks, Result to, R *diagonals) {
  const Mask mask = masks.now();
  __shared__ Tile<R> left, right, slopes, shares;
  const std::int64_t first = blockIdx.x % all.queryTiles() * kTile;
  const std::int64_t head = blockIdx.x / all.queryTiles() % all.heads;
  const std::int64_t b = blockIdx.x / all.queryTiles() / all.heads;
  const std::int64_t last =
      first + kTile < all.queries ? first + kTile : all.queries;
  R sums[kRows][Widths] = {}, factors[kRows];
  for (std::int64_t k = 0; k < all.visible(last - 1); k += kTile) {
    slopesOf(from, numbers, all, mask, b, head, first, k, left, right, slopes,
             shares);
    addRows<false>(slopes, keyRows(all, from.key, b, head / all.ofHead(), k),
                   all.width, left, sums);
    if (diagonals && threadIdx.x < kDiagonals) {
      // A thread sums one diagonal of the tile, on which the key's index is the
      // query's index plus `apart`.
      const int apart = static_cast<int>(threadIdx.x) - (kTile - 1);
      R sum = R(0);
      for (int q = 0; q < kTile; ++q)
        if (q + apart >= 0 && q + apart < kTile)
          sum += slopes[q][q + apart];
      diagonals[blockIdx.x * (all.keyTiles() + 1) * kTile + k + threadIdx.x] +=
          sum;
    }
  }
  fill(factors, static_cast<R>(all.scale));
  storeRows(to, all.queryAt(b, head, first), all.heads * all.width,
            last - first, all.width, sums, factors);
}

/// Computes the gradients of keys and values. A block processes a tile of keys
/// of one key head and sample, and iterates over the query heads of this key
/// head.
template <typename R, int Widths>
__global__ void __launch_bounds__(kTileThreads)
    keyGrad(GradOperands from, const RowNumbers<R> *numbers, Heads all,
            Masks masks, Result toKey, Result toValue) {
  const Mask mask = masks.now();
  __shared__ Tile<R> left, right, slopes, shares;
  const std::int64_t first = blockIdx.x % all.keyTiles() * kTile;
  const std::int64_t keyHead = blockIdx.x / all.keyTiles() % all.keyHeads;
  const std::int64_t b = blockIdx.x / all.keyTiles() / all.keyHeads;
  // seenFrom is the first query of the first tile in which a query attends to
  // any of these keys.
  const std::int64_t seenFrom =
      all.causal && first > all.positions.offset
          ? (first - all.positions.offset) / kTile * kTile
          : 0;
  R keySums[kRows][Widths] = {}, valueSums[kRows][Widths] = {}, factors[kRows];
  for (std::int64_t head = keyHead * all.ofHead();
       head < (keyHead + 1) * all.ofHead(); ++head)
    for (std::int64_t s = seenFrom; s < all.queries; s += kTile) {
      slopesOf(from, numbers, all, mask, b, head, s, first, left, right, slopes,
               shares);
      addRows<true>(slopes, queryRows(all, from.query, b, head, s), all.width,
                    left, keySums);
      addRows<true>(shares, queryRows(all, from.above, b, head, s), all.width,
                    left, valueSums);
    }
  const std::int64_t start = all.keyAt(b, keyHead, first);
  const std::int64_t stride = all.keyHeads * all.width, rows = all.keys - first;
  fill(factors, static_cast<R>(all.scale));
  storeRows(toKey, start, stride, rows, all.width, keySums, factors);
  fill(factors, R(1));
  storeRows(toValue, start, stride, rows, all.width, valueSums, factors);
}

/// Sums the diagonals into the gradient of the bias table, in the order of
/// samples. A block processes an element [row, head] of the table.
template <typename R>
__global__ void biasGrad(const R *diagonals, Heads all, Result to) {
  const std::int64_t row = blockIdx.x / all.heads;
  const std::int64_t head = blockIdx.x % all.heads;
  const std::int64_t length = (all.keyTiles() + 1) * kTile;
  R total = R(0);
  for (std::int64_t b = 0; b < all.batch; ++b) {
    const R *parts =
        diagonals + (b * all.heads + head) * all.queryTiles() * length;
    R sum = R(0);
    for (std::int64_t i = threadIdx.x; i < all.queryTiles() * length;
         i += blockDim.x) {
      const std::int64_t at =
          all.bucketAt(i / length * kTile + kTile - 1, i % length);
      if (at >= 0 && at < all.bucketAt(0, all.keys) && all.buckets[at] == row)
        sum += parts[i];
    }
    total += sumOverBlock(sum);
  }
  if (threadIdx.x == 0)
    storeOne(to, blockIdx.x, total);
}

template <typename R> std::size_t numberBytes(const Heads &all) {
  return roundedUp(
      static_cast<std::size_t>(all.batch * all.queries * all.heads) *
      sizeof(RowNumbers<R>));
}
template <typename R> std::size_t diagonalBytes(const Heads &all) {
  return static_cast<std::size_t>(all.batch * all.heads * all.queryTiles() *
                                  (all.keyTiles() + 1) * kTile) *
         sizeof(R);
}
/// Returns the scratch memory of attentionGradOf in bytes. The RowNumbers are
/// followed by the diagonals (with a bias table) or by CoreScratch (on tensor
/// cores, whose kernels support no bias and no soft cap).
/// \param isHalf  whether tensors have a 16-bit type
template <typename R>
std::size_t attentionGradScratch(const Heads &all, bool biased, bool isHalf,
                                 bool drops) {
  std::size_t more = biased ? diagonalBytes<R>(all) : 0;
  if (!biased && isHalf && suitCores(all)) {
    const CoreScratch parts(all, drops);
    more = parts.slopes + parts.kept;
  }
  return numberBytes<R>(all) + more;
}

/// Queues the gradients of attention, on tensor cores if suitCores() is true.
/// \param result, lse  the results of attentionOf
/// \param toTable  the gradient of the bias table, or no data
/// \param biases  the number of elements of the table
template <typename R, int Widths>
void attentionGradOf(cudaStream_t stream, const GradOperands &from,
                     const Operand &result, const Operand &lse,
                     const Result &toQuery, const Result &toKey,
                     const Result &toValue, const Result &toTable,
                     std::int64_t biases, const Heads &all, const Masks &masks,
                     void *scratch) {
  auto *numbers = static_cast<RowNumbers<R> *>(scratch);
  void *const afterNumbers =
      static_cast<std::byte *>(scratch) + numberBytes<R>(all);
  R *diagonals = nullptr;
  if (toTable.data) {
    diagonals = static_cast<R *>(afterNumbers);
    MTPLAN_CUDA(cudaMemsetAsync(diagonals, 0, diagonalBytes<R>(all), stream));
  }
  const std::int64_t rows = all.batch * all.queries * all.heads;
  launch(stream, {blocksFor(rows, kTileThreads / kRowLanes), 1, kTileThreads},
         project<R>, result, from.above, lse, rows, all.width, numbers);
  const RowNumbers<R> *const kept = numbers;
  if constexpr (std::is_same_v<R, float> && Widths * kTile <= kMostOnCores)
    if (suitCores(all, masks,
                  {from.query, from.key, from.value, from.above,
                   standing(toQuery), standing(toKey), standing(toValue)}))
      return withHalf(from.query.type, [&](auto *tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        attentionGradOnCores<T, Widths * kTile>(
            stream,
            {static_cast<const T *>(from.query.data),
             static_cast<const T *>(from.key.data),
             static_cast<const T *>(from.value.data),
             static_cast<const T *>(from.above.data)},
            kept, static_cast<T *>(toQuery.data), static_cast<T *>(toKey.data),
            static_cast<T *>(toValue.data), all, masks, afterNumbers);
      });
  launch(stream, {all.batch * all.heads * all.queryTiles(), 1, kTileThreads},
         queryGrad<R, Widths>, from, kept, all, masks, toQuery, diagonals);
  launch(stream, {all.batch * all.keyHeads * all.keyTiles(), 1, kTileThreads},
         keyGrad<R, Widths>, from, kept, all, masks, toKey, toValue);
  if (toTable.data)
    launch(stream, {biases, 1, kTileThreads}, biasGrad<R>,
           static_cast<const R *>(diagonals), all, toTable);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_GRAD_CUH

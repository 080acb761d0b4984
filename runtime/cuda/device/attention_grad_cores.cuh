//===- attention_grad_cores.cuh - Gradients on tensor cores -----*- C++ -*-===//
//
// The kernels implement FlashAttention-2's backward pass (Dao 2023) on tensor
// cores. Every sum has a fixed order, without atomics. One kernel iterates over
// queries for a tile of keys, and stores the gradients of the scores, from
// which another kernel computes the gradients of queries
// (attention_slopes.cuh). If the scores of a sample are too many to store
// (kMostSlopes), queryGradOnCores iterates over keys for a tile of queries, and
// computes the dropout mask and the gradients of the scores a second time. A
// block's own tile stays in shared memory. The other operands are read 32 rows
// at a time, and the next 32 rows are copied during the computation.
// Probabilities and score gradients are rounded to 16 bits only where they are
// factors of a product.
//
// For heads of up to 64 features, a block processes 128 queries or 128 keys in
// 55 KiB of shared memory. For up to 96 features, a block processes 128 queries
// in 79 KiB or 64 keys in 53 KiB. For up to 128 features, a block processes 128
// queries in 103 KiB or 64 keys in 69 KiB. If a device has less than 103 KiB
// per block, a block processes 64 queries of heads with more than 96 features
// in 69 KiB. The order of each query's sums stays the same.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_GRAD_CORES_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_GRAD_CORES_CUH

#include "runtime/cuda/device/attention_slopes.cuh"

namespace mtplan::runtime::cuda {

/// Holds the values that the gradients of the scores of one query need.
template <typename R> struct RowNumbers {
  R lse;        ///< log-sum-exp of the scores
  R projection; ///< dot product of the result and its gradient
};

inline constexpr unsigned kRowLanes = 16;

/// Computes the RowNumbers of each query.
template <typename R>
__global__ void project(Operand result, Operand above, Operand lse,
                        std::int64_t rows, std::int64_t width,
                        RowNumbers<R> *to) {
  const std::int64_t row = threadOfGrid() / kRowLanes;
  const unsigned lane = threadIdx.x % kRowLanes;
  R sum = R(0);
  if (row < rows)
    for (std::int64_t h = lane * kPack; h < width; h += kRowLanes * kPack) {
      R left[kPack], right[kPack];
      load(result, row * width + h, packAt(h, width), left);
      load(above, row * width + h, packAt(h, width), right);
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        sum += left[i] * right[i];
    }
  sum = overWarp<kRowLanes>(sum, Plus());
  if (row < rows && lane == 0)
    to[row] = {loadOne<R>(lse, row), sum};
}

/// Sets the tile sizes of a block for heads of up to Width features: strips per
/// warp, rows of the block's own tile (kOwn), and rows of other operands per
/// load (kOthers).
template <int Width, int Strips> struct QueryGradShape {
  static constexpr int kStrips = Strips;
  static constexpr int kOwn = kCoreWarps * kStrips * kStrip;
  static constexpr int kOthers = 32;
  static constexpr unsigned kShared = tileBytes<Width>(2 * kOwn + 4 * kOthers) +
                                      kOwn * sizeof(RowNumbers<float>);
  /// Sets the number of blocks per multiprocessor for which the registers must
  /// suffice.
  static constexpr int kAtOnce = Width <= 64 ? 3 : 2;
};
template <int Width> struct KeyGradShape {
  static constexpr int kStrips = Width <= 64 ? 2 : 1;
  /// Heads of 65 to 96 features leave enough registers to hold a warp's keys
  /// and values.
  template <typename T>
  using OwnRows = std::conditional_t<kStrips == 1 && Width <= 96,
                                     HeldStrip<Width>, TileRows<Width, T>>;
  static constexpr int kOwn = kCoreWarps * kStrips * kStrip;
  static constexpr int kOthers = 32;
  static constexpr unsigned kShared = tileBytes<Width>(2 * kOwn + 4 * kOthers) +
                                      2 * kOthers * sizeof(RowNumbers<float>);
};

/// `above` is the gradient of the result.
template <typename T> struct CoreOperands {
  const T *query, *key, *value, *above;
};

/// Returns the gradient of a score.
/// \param above  the dot product of the value and the result's gradient, or
/// zero if the probability is dropped
/// \param factor  dropout's factor for probabilities that are kept
/// \param scale  the scale of scores times log2(e)
/// \param share  receives the probability before dropout
__device__ __forceinline__ float slopeOf(float score, float above, float factor,
                                         float scale,
                                         const RowNumbers<float> &row,
                                         float &share) {
  share = powerOfTwo(score * scale - row.lse * static_cast<float>(kLog2E));
  return share * (above * factor - row.projection);
}

/// Begins the asynchronous copy of the RowNumbers of Rows queries of a head.
/// Only the first `there` queries (at least one) exist; the RowNumbers of other
/// queries become zeros.
template <int Rows>
__device__ void beginNumbers(RowNumbers<float> *to,
                             const RowNumbers<float> *from, int stride,
                             int there) {
  const int row = static_cast<int>(threadIdx.x);
  static_assert(Rows <= kCoreThreads);
  if (row < Rows)
    beginCopy<sizeof(RowNumbers<float>)>(
        to + row, row < there ? from + std::int64_t{row} * stride : from,
        row < there);
}

/// Computes the gradients of queries. A block processes a tile of queries of
/// one head and sample; tiles are scheduled as in attendOnCores.
template <typename T, int Width, int Strips, bool Drops>
__global__ void __launch_bounds__(kCoreThreads,
                                  QueryGradShape<Width, Strips>::kAtOnce)
    queryGradOnCores(CoreOperands<T> from, const RowNumbers<float> *numbers,
                     Heads all, Masks masks, T *to) {
  using Shape = QueryGradShape<Width, Strips>;
  constexpr int kStrips = Shape::kStrips, kKeys = Shape::kOthers,
                kTileSize = kKeys * kPitch<Width>;
  T *const queries = static_cast<T *>(launchedMemory());
  T *const aboves = queries + Shape::kOwn * kPitch<Width>;
  T *const pairs = aboves + Shape::kOwn * kPitch<Width>; // two pairs of tiles
  auto *const rowNumbers =
      reinterpret_cast<RowNumbers<float> *>(pairs + 4 * kTileSize);
  const CoreBlock block(blockIdx.x, all.queries, Shape::kOwn, all.heads);
  const int first = block.lastFirst(), head = block.head,
            row = warpOfBlock() * kStrips * kStrip, lane = laneOfWarp(),
            width = static_cast<int>(all.width),
            left = static_cast<int>(all.queries) - first;
  const CausalMask causal(all);
  const int end = causal.ofTile(first, Shape::kOwn, left),
            seenByWarp = causal.of(first + row + kStrips * kStrip - 1);
  const float scale = static_cast<float>(all.scale * kLog2E);

  const std::int64_t keysAt = all.keyAt(block.sample, head / all.ofHead(), 0);
  const auto begin = [&](int k) {
    T *const pair = pairs + k / kKeys % 2 * (2 * kTileSize);
    const int stride = static_cast<int>(all.keyHeads * all.width);
    const std::int64_t at = keysAt + std::int64_t{k} * stride;
    beginRows<kKeys, Width>(pair, from.key + at, stride, causal.keys - k,
                            width);
    beginRows<kKeys, Width>(pair + kTileSize, from.value + at, stride,
                            causal.keys - k, width);
  };
  const std::int64_t at = all.queryAt(block.sample, head, first);
  const int stride = static_cast<int>(all.heads * all.width);
  beginRows<Shape::kOwn, Width>(queries, from.query + at, stride, left, width);
  beginRows<Shape::kOwn, Width>(aboves, from.above + at, stride, left, width);
  begin(0);
  beginNumbers<Shape::kOwn>(rowNumbers,
                            numbers + all.keptAt(block.sample, head, first),
                            static_cast<int>(all.heads), left);
  CoreSums<kStrips, Width> sums = {};
  const CoreMaskOf<Drops> mask(masks, all, block.sample, head, first + row);
  const TileRows<Width, T> ownQueries{queries, row}, ownAboves{aboves, row};
  for (int k = 0; k < end; k += kKeys) {
    endCopies();
    __syncthreads();
    if (k + kKeys < end)
      begin(k + kKeys);
    if (k >= seenByWarp)
      continue;
    const T *const keys = pairs + k / kKeys % 2 * (2 * kTileSize);
    CoreSums<kStrips, kKeys> scores, above;
    dotRows<Width, kStrips, kKeys>(scores, ownQueries, keys);
    dotRows<Width, kStrips, kKeys>(above, ownAboves, keys + kTileSize);
    if (causal.of(first + row) < k + kKeys)
      hideUnseen<false, kStrips, kKeys>(scores, causal, first + row, k);
    CorePairs<kStrips, kKeys> slopes;
#pragma unroll
    for (int s = 0; s < kStrips; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int of = s * kStrip + half * 8;
        const RowNumbers<float> its = rowNumbers[row + of + lane / 4];
        KeptPairOf<Drops> kept[kKeys / 8];
        mask.ofColumns(of, k, kept);
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n) {
          float pair[2], share;
          kept[n].zeroDropped(above[s][n][half * 2], above[s][n][half * 2 + 1]);
#pragma unroll
          for (int i = 0; i < 2; ++i)
            pair[i] =
                slopeOf(scores[s][n][half * 2 + i], above[s][n][half * 2 + i],
                        mask.factor(), scale, its, share);
          slopes[s][n][half] = pairOf<T>(pair[0], pair[1]);
        }
      }
    addWeighted<Width, kKeys, kStrips>(sums, slopes, keys);
  }
  storeSums<kStrips, Width>(to + at, stride, row, left, width, sums,
                            static_cast<float>(all.scale));
}

/// Computes the gradients of keys and values. A block processes a tile of keys
/// of one key head and sample, and iterates over the query heads of this key
/// head.
/// \param stored  holds one bit per score, which drawKept sets if dropout keeps
/// the score
/// \param toSlopes  receives the gradients of the scores, unless its memory is
/// null
template <typename T, int Width, bool Drops>
__global__ void __launch_bounds__(kCoreThreads)
    keyGradOnCores(CoreOperands<T> from, const RowNumbers<float> *numbers,
                   Heads all, Masks masks, KeptScores stored,
                   StoredSlopes toSlopes, T *toKey, T *toValue) {
  using Shape = KeyGradShape<Width>;
  constexpr int kStrips = Shape::kStrips, kQueries = Shape::kOthers,
                kTileSize = kQueries * kPitch<Width>;
  T *const keys = static_cast<T *>(launchedMemory());
  T *const values = keys + Shape::kOwn * kPitch<Width>;
  T *const pairs = values + Shape::kOwn * kPitch<Width>; // two pairs of tiles
  auto *const rowNumbers =
      reinterpret_cast<RowNumbers<float> *>(pairs + 4 * kTileSize);
  const CoreBlock block(blockIdx.x, all.keys, Shape::kOwn, all.keyHeads);
  const int first = block.tile * Shape::kOwn,
            row = warpOfBlock() * kStrips * kStrip, lane = laneOfWarp(),
            width = static_cast<int>(all.width),
            rows = static_cast<int>(all.queries);
  const CausalMask causal(all);
  const float scale = static_cast<float>(all.scale * kLog2E);
  // seenFrom is the first query of the first tile in which a query attends to
  // any of these keys.
  const int seenFrom = first >= causal.past
                           ? (first - causal.past + 1) / kQueries * kQueries
                           : 0;
  const int firstHead = block.head * static_cast<int>(all.ofHead()),
            endOfHeads = firstHead + static_cast<int>(all.ofHead());
  const StoredMaskOf<Drops> mask(
      stored, masks, block.sample * all.heads + firstHead, first + row);

  const auto begin = [&](int head, int query, int turn) {
    T *const pair = pairs + turn * (2 * kTileSize);
    const int stride = static_cast<int>(all.heads * all.width);
    const std::int64_t at = all.queryAt(block.sample, head, query);
    beginRows<kQueries, Width>(pair, from.query + at, stride, rows - query,
                               width);
    beginRows<kQueries, Width>(pair + kTileSize, from.above + at, stride,
                               rows - query, width);
    beginNumbers<kQueries>(rowNumbers + turn * kQueries,
                           numbers + all.keptAt(block.sample, head, query),
                           static_cast<int>(all.heads), rows - query);
  };
  const std::int64_t at = all.keyAt(block.sample, block.head, first);
  const int stride = static_cast<int>(all.keyHeads * all.width),
            left = causal.keys - first;
  beginRows<Shape::kOwn, Width>(keys, from.key + at, stride, left, width);
  beginRows<Shape::kOwn, Width>(values, from.value + at, stride, left, width);
  CoreSums<kStrips, Width> keySums = {}, valueSums = {};
  int head = seenFrom < rows ? firstHead : endOfHeads, query = seenFrom,
      turn = 0;
  if (head < endOfHeads)
    begin(head, query, turn);
  // The copies must be complete before HeldStrip reads the block's own tile.
  endCopies();
  __syncthreads();
  const typename Shape::template OwnRows<T> ownKeys{keys, row},
      ownValues{values, row};
  while (head < endOfHeads) {
    const int atQuery = query, atHead = head;
    endCopies();
    __syncthreads();
    const T *const queries = pairs + turn * (2 * kTileSize);
    const T *const aboves = queries + kTileSize;
    const RowNumbers<float> *const its = rowNumbers + turn * kQueries;
    turn = 1 - turn;
    query += kQueries;
    if (query >= rows) {
      query = seenFrom;
      ++head;
    }
    if (head < endOfHeads)
      begin(head, query, turn);
    // Skips a tile whose queries attend to none of this warp's keys.
    if (first + row >= causal.of(atQuery + kQueries - 1))
      continue;
    typename StoredMaskOf<Drops>::Words words[kQueries / 8];
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n)
      words[n] = mask.load(atHead - firstHead, atQuery + n * 8);
    // Rows beyond the last query are zeros, and add nothing.
    CoreSums<kStrips, kQueries> scores, above;
    dotRows<Width, kStrips, kQueries>(scores, ownKeys, queries);
    dotRows<Width, kStrips, kQueries>(above, ownValues, aboves);
    if (causal.of(atQuery) < first + row + kStrips * kStrip)
      hideUnseen<true, kStrips, kQueries>(scores, causal, atQuery, first + row);
    CorePairs<kStrips, kQueries> shares, slopes;
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
      const RowNumbers<float> of[] = {its[n * 8 + lane % 4 * 2],
                                      its[n * 8 + lane % 4 * 2 + 1]};
#pragma unroll
      for (int s = 0; s < kStrips; ++s)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float share[2], slope[2];
          mask.zeroDropped(words[n], s, half, above[s][n][half * 2],
                           above[s][n][half * 2 + 1]);
#pragma unroll
          for (int i = 0; i < 2; ++i)
            slope[i] =
                slopeOf(scores[s][n][half * 2 + i], above[s][n][half * 2 + i],
                        mask.factor(), scale, of[i], share[i]);
          mask.zeroDropped(words[n], s, half, share[0], share[1]);
          shares[s][n][half] = pairOf<T>(share[0], share[1]);
          slopes[s][n][half] = pairOf<T>(slope[0], slope[1]);
        }
    }
    if (toSlopes.words) {
      static_assert(kQueries == StoredSlopes::kQueries);
      uint4 *const to =
          toSlopes.at(block.sample * all.heads + atHead, atQuery, first + row);
#pragma unroll
      for (int s = 0; s < kStrips; ++s)
        storeSlopes(to + s * (2 * kWarp), slopes[s]);
    }
    addWeighted<Width, kQueries, kStrips>(valueSums, shares, aboves);
    addWeighted<Width, kQueries, kStrips>(keySums, slopes, queries);
  }
  storeSums<kStrips, Width>(toKey + at, stride, row, left, width, keySums,
                            static_cast<float>(all.scale));
  storeSums<kStrips, Width>(toValue + at, stride, row, left, width, valueSums,
                            mask.factor());
}

template <typename T, int Width, int Strips>
void launchQueryGrad(cudaStream_t stream, const CoreOperands<T> &from,
                     const RowNumbers<float> *numbers, T *toQuery,
                     const Heads &all, const Masks &masks) {
  using Shape = QueryGradShape<Width, Strips>;
  launch(stream,
         {.blocks = all.batch * all.heads * blocksFor(all.queries, Shape::kOwn),
          .threads = kCoreThreads,
          .shared = Shape::kShared},
         masks.limit > 0 ? queryGradOnCores<T, Width, Strips, true>
                         : queryGradOnCores<T, Width, Strips, false>,
         from, numbers, all, masks, toQuery);
}

/// Queues the gradients of queries if the gradients of the scores are not
/// stored.
template <typename T, int Width>
void queueQueryGrad(cudaStream_t stream, const CoreOperands<T> &from,
                    const RowNumbers<float> *numbers, T *toQuery,
                    const Heads &all, const Masks &masks) {
  constexpr int kMostStrips = 2;
  bool fits = true;
  if constexpr (Width > 96)
    fits = QueryGradShape<Width, kMostStrips>::kShared <= mostSharedOfDevice();
  if (fits)
    launchQueryGrad<T, Width, kMostStrips>(stream, from, numbers, toQuery, all,
                                           masks);
  else if constexpr (Width > 96)
    launchQueryGrad<T, Width, 1>(stream, from, numbers, toQuery, all, masks);
}

/// Divides the scratch memory of the kernels on tensor cores: first the
/// gradients of the scores of `samples` samples, and then, with dropout, the
/// KeptScores of these samples.
struct CoreScratch {
  bool storesSlopes;
  std::int64_t samples;     ///< samples per call of attentionGradOfSome
  std::size_t slopes, kept; ///< bytes

  /// \param most  limits the bytes of the gradients
  CoreScratch(const Heads &all, bool drops, std::int64_t most = kMostSlopes) {
    Heads some = all;
    some.batch = 1;
    const std::int64_t one = StoredSlopes::bytes(some);
    storesSlopes = one <= most;
    samples =
        storesSlopes && one > 0 ? std::min(all.batch, most / one) : all.batch;
    some.batch = samples;
    slopes = storesSlopes ? static_cast<std::size_t>(one * samples) : 0;
    kept = drops ? KeptScores::bytes(some) : 0;
  }
};

/// Queues the kernels for the samples that share the scratch memory.
template <typename T, int Width>
void attentionGradOfSome(cudaStream_t stream, const CoreOperands<T> &from,
                         const RowNumbers<float> *numbers, T *toQuery, T *toKey,
                         T *toValue, const Heads &all, const Masks &masks,
                         const KeptScores &kept, const StoredSlopes &slopes) {
  using Keys = KeyGradShape<Width>;
  using Slopes = SlopesShape<Width>;
  if (masks.limit > 0)
    launch(stream,
           {.blocks = all.batch * all.heads *
                      blocksFor(all.queries, kCoreWarps * kQueriesPerDraw),
            .threads = kCoreThreads},
           drawKept, all, masks, kept);
  launch(stream,
         {.blocks = all.batch * all.keyHeads * blocksFor(all.keys, Keys::kOwn),
          .threads = kCoreThreads,
          .shared = Keys::kShared},
         masks.limit > 0 ? keyGradOnCores<T, Width, true>
                         : keyGradOnCores<T, Width, false>,
         from, numbers, all, masks, kept, slopes, toKey, toValue);
  if (!slopes.words)
    return queueQueryGrad<T, Width>(stream, from, numbers, toQuery, all, masks);
  launch(stream,
         {.blocks =
              all.batch * all.heads * blocksFor(all.queries, Slopes::kQueries),
          .threads = kCoreThreads,
          .shared = Slopes::kShared},
         queryGradOfSlopes<T, Width>, from.key, slopes, all, toQuery);
}

/// Queues the gradients on tensor cores. `numbers` are the results of
/// project(). CoreScratch(all, masks.limit > 0, most) describes the memory at
/// `scratch`.
template <typename T, int Width>
void attentionGradOnCores(cudaStream_t stream, const CoreOperands<T> &from,
                          const RowNumbers<float> *numbers, T *toQuery,
                          T *toKey, T *toValue, const Heads &all,
                          const Masks &masks, void *scratch,
                          std::int64_t most = kMostSlopes) {
  const CoreScratch parts(all, masks.limit > 0, most);
  for (std::int64_t first = 0; first < all.batch; first += parts.samples) {
    Heads some = all;
    some.batch = std::min(parts.samples, all.batch - first);
    some.samples.offset += first;
    const std::int64_t query = all.queryAt(first, 0, 0),
                       key = all.keyAt(first, 0, 0);
    attentionGradOfSome<T, Width>(
        stream,
        {from.query + query, from.key + key, from.value + key,
         from.above + query},
        numbers + all.keptAt(first, 0, 0), toQuery + query, toKey + key,
        toValue + key, some, masks,
        KeptScores(some, static_cast<std::byte *>(scratch) + parts.slopes),
        StoredSlopes(some, parts.storesSlopes ? scratch : nullptr));
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_GRAD_CORES_CUH

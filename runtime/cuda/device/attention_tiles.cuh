//===- attention_tiles.cuh - Tiles of attention's tensors -------*- C++ -*-===//
//
// Queries and keys are processed in tiles of 32, so that only the scores of one
// tile are in memory at a time (Dao et al. 2022). Each of a block's four warps
// processes eight rows of a tile, and each lane processes a column. Tensors are
// loaded 32 features at a time, so that the shared memory of a block suffices
// for any width.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_TILES_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_TILES_CUH

#include <vector>

#include "runtime/backend/relative_position.h"
#include "runtime/backend/tensor_view.h"
#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/dropout.cuh"

namespace mtplan::runtime::cuda {

inline constexpr int kTile = kWarp;
inline constexpr int kRows = 8; ///< rows of a tile per warp
inline constexpr unsigned kTileThreads = kTile / kRows * kWarp;
inline constexpr std::int64_t kMostWidth = 8 * kTile; ///< features per head

/// Defines a tile in shared memory, padded by a column so that the lanes that
/// read a column access different banks.
template <typename R> using Tile = R[kTile][kTile + 1];

/// Loads one element. The function is not inlined, because inlining would put
/// code for all element types into loops.
template <typename R>
__device__ __noinline__ R loadRarely(Operand from, std::int64_t index) {
  return loadOne<R>(from, index);
}

struct Heads {
  std::int64_t width, batch, queries, heads, keys, keyHeads;
  bool causal;
  double scale;
  Span samples, positions; ///< ranges of the queries' shard
  std::int64_t firstHead, allHeads;
  std::int64_t microBatch = 0;
  Operand table = kNone;                 ///< the bias table, or no data
  const std::int32_t *buckets = nullptr; ///< table rows, indexed by bucketAt()
  double softcap = 0.0; ///< 0: no soft cap; a soft cap excludes a table

  __host__ __device__ std::int64_t queryTiles() const {
    return (queries + kTile - 1) / kTile;
  }
  __host__ __device__ std::int64_t keyTiles() const {
    return (keys + kTile - 1) / kTile;
  }
  /// Returns the number of query heads per key head.
  __device__ std::int64_t ofHead() const { return heads / keyHeads; }

  /// Returns the index of the first element of a query (queryAt) or a key
  /// (keyAt), or the index of a query's log-sum-exp (keptAt).
  __host__ __device__ std::int64_t queryAt(std::int64_t b, std::int64_t head,
                                           std::int64_t s) const {
    return ((b * queries + s) * heads + head) * width;
  }
  __host__ __device__ std::int64_t keyAt(std::int64_t b, std::int64_t keyHead,
                                         std::int64_t k) const {
    return ((b * keys + k) * keyHeads + keyHead) * width;
  }
  __host__ __device__ std::int64_t keptAt(std::int64_t b, std::int64_t head,
                                          std::int64_t s) const {
    return (b * queries + s) * heads + head;
  }
  /// Returns how many keys the query at local position `s` attends to.
  __device__ std::int64_t visible(std::int64_t s) const {
    const std::int64_t past = positions.offset + s + 1;
    return causal && past < keys ? past : keys;
  }
  /// Returns the index of a query's first score in the dropout mask.
  __device__ std::int64_t maskRow(std::int64_t b, std::int64_t head,
                                  std::int64_t s) const {
    const std::int64_t sample =
        microBatch * samples.global + samples.offset + b;
    return ((sample * allHeads + firstHead + head) * positions.global +
            positions.offset + s) *
           scorePitch(keys);
  }
  __device__ std::int64_t maskAt(std::int64_t b, std::int64_t head,
                                 std::int64_t s, std::int64_t k) const {
    return maskRow(b, head, s) + scoreIndex(k);
  }
  /// Returns the index into `buckets` for a query and a key. The index depends
  /// only on their distance.
  __host__ __device__ std::int64_t bucketAt(std::int64_t s,
                                            std::int64_t k) const {
    return k - s + queries - 1;
  }
  template <typename R>
  __device__ R score(R product, std::int64_t head, std::int64_t s,
                     std::int64_t k) const {
    const R scaled = static_cast<R>(scale) * product;
    if (softcap > 0.0) {
      const R cap = static_cast<R>(softcap);
      return cap * tanh(scaled / cap);
    }
    return table.data
               ? scaled + loadRarely<R>(table,
                                        buckets[bucketAt(s, k)] * heads + head)
               : scaled;
  }
};

/// Returns the derivative of a score with respect to its scaled product.
template <typename R> __device__ R scoreSlope(const Heads &all, R score) {
  if (!(all.softcap > 0.0))
    return R(1);
  const R share = score / static_cast<R>(all.softcap);
  return R(1) - share * share;
}

/// Describes the rows of a head from the first row of a tile on. If `rows`, the
/// number of these rows, is below kTile, the tile is incomplete.
struct HeadRows {
  Operand from;
  std::int64_t start, stride, rows;
};

inline __device__ HeadRows queryRows(const Heads &all, const Operand &from,
                                     std::int64_t b, std::int64_t head,
                                     std::int64_t first) {
  return {from, all.queryAt(b, head, first), all.heads * all.width,
          all.queries - first};
}
inline __device__ HeadRows keyRows(const Heads &all, const Operand &from,
                                   std::int64_t b, std::int64_t keyHead,
                                   std::int64_t first) {
  return {from, all.keyAt(b, keyHead, first), all.keyHeads * all.width,
          all.keys - first};
}

/// Loads features [first, first + kTile) of a tile, with zeros beyond the end;
/// each thread loads a pack. The function is not inlined, because inlining
/// would copy code for all element types to many callers.
template <typename R>
__device__ __noinline__ void loadTile(HeadRows rows, std::int64_t first,
                                      std::int64_t width, Tile<R> &tile) {
  constexpr unsigned kPacks = kTile / kPack;
  const unsigned row = threadIdx.x / kPacks,
                 column = threadIdx.x % kPacks * kPack;
  const std::int64_t left = width - first - column;
  int count = left < kPack ? static_cast<int>(left) : kPack;
  if (count < 0 || row >= rows.rows)
    count = 0;
  R x[kPack];
  load(rows.from, rows.start + row * rows.stride + first + column, count, x);
  for (int i = 0; i < kPack; ++i)
    tile[row][column + i] = x[i];
}

/// Computes the dot products of this warp's rows of `left` with this lane's row
/// of `right`, and adds these products to `sums`.
template <typename R>
__device__ void addProducts(const HeadRows &left, const HeadRows &right,
                            std::int64_t width, Tile<R> &leftTile,
                            Tile<R> &rightTile, R (&sums)[kRows]) {
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned row = threadIdx.x / kWarp * kRows;
  for (std::int64_t first = 0; first < width; first += kTile) {
    __syncthreads(); // all threads have read the previous tiles
    loadTile(left, first, width, leftTile);
    loadTile(right, first, width, rightTile);
    __syncthreads();
    const int features =
        width - first < kTile ? static_cast<int>(width - first) : kTile;
    for (int f = 0; f < features; ++f) {
      const R x = rightTile[lane][f];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        sums[r] += leftTile[row + r][f] * x;
    }
  }
}

/// Adds the matrix product of `weights` and `rows` to `sums`, for this warp's
/// rows of the result. Lane l computes features l, l + 32, and so on.
/// \tparam ByColumn whether this warp's rows of the result are columns of
/// `weights`
template <bool ByColumn, typename R, int Widths>
__device__ void addRows(const Tile<R> &weights, const HeadRows &rows,
                        std::int64_t width, Tile<R> &tile,
                        R (&sums)[kRows][Widths]) {
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned row = threadIdx.x / kWarp * kRows;
#pragma unroll
  for (int part = 0; part < Widths; ++part) {
    if (part * kTile >= width)
      continue;
    __syncthreads(); // all threads have written `weights` and read `tile`
    loadTile(rows, part * kTile, width, tile);
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      const R x = tile[i][lane];
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        sums[r][part] +=
            (ByColumn ? weights[i][row + r] : weights[row + r][i]) * x;
    }
  }
}

/// Stores the sums of addRows, times a factor for each row.
template <typename R, int Widths>
__device__ void storeRows(const Result &to, std::int64_t start,
                          std::int64_t stride, std::int64_t rows,
                          std::int64_t width, const R (&sums)[kRows][Widths],
                          const R (&factors)[kRows]) {
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned row = threadIdx.x / kWarp * kRows;
  withType(to.type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    T *data = static_cast<T *>(to.data) + start;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int part = 0; part < Widths; ++part) {
        const std::int64_t h = part * kTile + lane;
        if (row + r < rows && h < width)
          data[(row + r) * stride + h] =
              narrowed<T>(sums[r][part] * factors[r]);
      }
  });
}

/// Returns the row of the bias table for each distance, indexed by
/// Heads::bucketAt.
/// \param offset  the global position of the first query
inline std::vector<std::int32_t>
biasRows(std::int64_t queries, std::int64_t keys, std::int64_t offset,
         std::int64_t rows, std::int64_t maxDistance, bool bothWays) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < queries + keys - 1; ++i)
    all.push_back(static_cast<std::int32_t>(relativeBucket(
        i - (queries - 1) - offset, rows, maxDistance, bothWays)));
  return all;
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_TILES_CUH

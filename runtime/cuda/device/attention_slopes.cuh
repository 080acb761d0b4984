//===- attention_slopes.cuh - Stored gradients of scores --------*- C++ -*-===//
//
// keyGradOnCores stores the gradients of the scores, and a kernel of this file
// multiplies these gradients by the keys, so that the gradients are computed
// only once. These gradients take two bytes per score. The dropout mask takes
// one bit per score, and is drawn before both kernels run.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_SLOPES_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_SLOPES_CUH

#include "runtime/cuda/device/attention_tiles.cuh"
#include "runtime/cuda/device/core_masks.cuh"

namespace mtplan::runtime::cuda {

/// Limits the bytes of the stored gradients. If all samples need more, the
/// samples are processed in groups. If one sample needs more, nothing is stored
/// and the gradients are computed twice.
inline constexpr std::int64_t kMostSlopes = std::int64_t{512} << 20;

/// Stores the gradients of the scores ("slopes", dS in FlashAttention) rounded
/// to 16 bits, in tiles of 32 queries and 16 keys. A tile has the words that
/// each lane needs for the left factors (operand A of mma) of two strips of 16
/// queries: first the words of the first strip for all lanes, then the words of
/// the second strip.
struct StoredSlopes {
  uint4 *words;
  std::int64_t queryTiles, keyTiles; ///< tiles per head

  static constexpr int kQueries = 32, kKeys = kStrip;
  /// The number of keys is rounded up to a multiple of kRounded, which is the
  /// largest number of keys per warp.
  static constexpr std::int64_t kRounded = 32;

  __host__ __device__ StoredSlopes(const Heads &all, void *memory)
      : words(static_cast<uint4 *>(memory)),
        queryTiles((all.queries + kQueries - 1) / kQueries),
        keyTiles((all.keys + kRounded - 1) / kRounded * (kRounded / kKeys)) {}

  static std::int64_t bytes(const Heads &all) {
    const StoredSlopes slopes(all, nullptr);
    return all.batch * all.heads * slopes.queryTiles * slopes.keyTiles *
           kQueries * kKeys * 2;
  }
  /// Returns this lane's words of the first strip; this lane's words of the
  /// second strip are kWarp elements later.
  __device__ uint4 *at(std::int64_t headOfAll, int query, int key) const {
    const std::int64_t tile =
        (headOfAll * queryTiles + query / kQueries) * keyTiles + key / kKeys;
    return words + tile * (2 * kWarp) + laneOfWarp();
  }
};

/// Stores this warp's gradients of the scores of a strip of keys (rows) for 32
/// queries (columns), from CorePairs of the strip.
__device__ __forceinline__ void
storeSlopes(uint4 *to, const std::uint32_t (&pairs)[4][2]) {
#pragma unroll
  for (int s = 0; s < 2; ++s)
    to[s * kWarp] = {
        transposedPair(pairs[2 * s][0]), transposedPair(pairs[2 * s + 1][0]),
        transposedPair(pairs[2 * s][1]), transposedPair(pairs[2 * s + 1][1])};
}

inline constexpr int kQueriesPerDraw = 8; ///< queries of a warp in drawKept

/// Draws and stores the dropout mask of all scores that queries attend to. A
/// warp draws for eight queries of one head and sample.
static __global__ void __launch_bounds__(kCoreThreads)
    drawKept(Heads all, Masks masks, KeptScores stored) {
  const CoreBlock block(blockIdx.x, all.queries, kCoreWarps * kQueriesPerDraw,
                        all.heads);
  const int first = block.tile * block.rows + warpOfBlock() * kQueriesPerDraw;
  if (first >= all.queries)
    return;
  const CoreMask mask(masks, all, block.sample, block.head, first);
  const int end = CausalMask(all).of(first + kQueriesPerDraw - 1);
  const std::int64_t headOfAll = block.sample * all.heads + block.head;
  for (int key = 0; key < end; key += static_cast<int>(kScoreGroup)) {
    KeptPair pairs[4];
    mask.ofColumns(0, key, pairs);
    storeKept(stored.at(headOfAll, key) + first + laneOfWarp() / 4, pairs);
  }
}

/// Sets the tile sizes of a block that multiplies stored gradients by keys.
template <int Width> struct SlopesShape {
  static constexpr int kStrips = 2;
  static constexpr int kQueries = kCoreWarps * kStrips * kStrip;
  static constexpr int kKeys = 64;
  static constexpr unsigned kShared = tileBytes<Width>(2 * kKeys);
};

/// Computes the gradients of queries from the gradients of the scores. A block
/// processes a tile of queries of one head and sample; tiles are scheduled as
/// in attendOnCores.
template <typename T, int Width>
__global__ void __launch_bounds__(kCoreThreads)
    queryGradOfSlopes(const T *key, StoredSlopes slopes, Heads all, T *to) {
  using Shape = SlopesShape<Width>;
  constexpr int kStrips = Shape::kStrips, kKeys = Shape::kKeys,
                kTileSize = kKeys * kPitch<Width>;
  T *const tiles = static_cast<T *>(launchedMemory()); // two tiles
  const CoreBlock block(blockIdx.x, all.queries, Shape::kQueries, all.heads);
  const int first = block.lastFirst(), head = block.head,
            row = warpOfBlock() * kStrips * kStrip,
            width = static_cast<int>(all.width),
            left = static_cast<int>(all.queries) - first;
  const CausalMask causal(all);
  const int end = causal.ofTile(first, Shape::kQueries, left);
  // Tiles from key seenByWarp on may be unwritten. seenByWarp is 0 if all rows
  // of this warp are beyond the last query.
  const int seenByWarp =
      row < left ? causal.of(first + row + kStrips * kStrip - 1) : 0;
  const std::int64_t keysAt = all.keyAt(block.sample, head / all.ofHead(), 0),
                     headOfAll = block.sample * all.heads + head;
  const auto begin = [&](int k) {
    const int stride = static_cast<int>(all.keyHeads * all.width);
    beginRows<kKeys, Width>(tiles + k / kKeys % 2 * kTileSize,
                            key + keysAt + std::int64_t{k} * stride, stride,
                            causal.keys - k, width);
  };
  begin(0);
  CoreSums<kStrips, Width> sums = {};
  for (int k = 0; k < end; k += kKeys) {
    uint4 words[kKeys / StoredSlopes::kKeys][kStrips];
#pragma unroll
    for (int b = 0; b < kKeys / StoredSlopes::kKeys; ++b) {
      const int from = k + b * StoredSlopes::kKeys;
      const uint4 *const at = slopes.at(headOfAll, first + row, from);
#pragma unroll
      for (int s = 0; s < kStrips; ++s)
        words[b][s] = from < seenByWarp ? at[s * kWarp] : uint4{0, 0, 0, 0};
    }
    endCopies();
    __syncthreads();
    if (k + kKeys < end)
      begin(k + kKeys);
    if (k >= seenByWarp)
      continue;
    CorePairs<kStrips, kKeys> pairs;
#pragma unroll
    for (int b = 0; b < kKeys / StoredSlopes::kKeys; ++b)
#pragma unroll
      for (int s = 0; s < kStrips; ++s) {
        pairs[s][2 * b][0] = words[b][s].x;
        pairs[s][2 * b][1] = words[b][s].y;
        pairs[s][2 * b + 1][0] = words[b][s].z;
        pairs[s][2 * b + 1][1] = words[b][s].w;
      }
    addWeighted<Width, kKeys, kStrips>(sums, pairs,
                                       tiles + k / kKeys % 2 * kTileSize);
  }
  storeSums<kStrips, Width>(to + all.queryAt(block.sample, head, first),
                            static_cast<int>(all.heads * all.width), row, left,
                            width, sums, static_cast<float>(all.scale));
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ATTENTION_SLOPES_CUH

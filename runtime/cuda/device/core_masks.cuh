//===- core_masks.cuh - Dropout masks on tensor cores -----------*- C++ -*-===//
//
// A Philox draw masks eight scores of one query: two adjacent scores in each of
// four groups of eight keys (scoreIndex in runtime/random). If queries are the
// rows of a tile, one lane holds all eight scores and draws their masks. If
// keys are the rows, as in keyGradOnCores, a lane reads one bit per score,
// which another kernel (drawKept) has drawn and stored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH

#include "runtime/cuda/device/core_tiles.cuh"

namespace mtplan::runtime::cuda {

/// Determines which of two adjacent elements dropout keeps. The random bits are
/// compared with the limit as 16-bit floats; NaN compares as larger than any
/// limit.
class KeptPair {
public:
  KeptPair() = default;
  /// \param limit  at most kMostLimitOnCores
  __device__ KeptPair(std::uint32_t theWord, std::uint32_t limit)
      : word(theWord), limits(limit << 16 | limit) {}

  /// Returns 16 bits per element: ones if the element is kept, else zeros.
  __device__ std::uint32_t mask() const {
    __half2 number, least;
    memcpy(static_cast<void *>(&number), &word, sizeof(word));
    memcpy(static_cast<void *>(&least), &limits, sizeof(limits));
    return __hgeu2_mask(__habs2(number), least);
  }
  __device__ void zeroDropped(float &low, float &high) const {
    zeroBelow(word, limits, low, high);
  }

private:
  std::uint32_t word, limits;
};

/// Draws the dropout masks of a warp's score tile, whose rows are queries.
class CoreMask {
public:
  /// \param query  the first query of the tile
  __device__ CoreMask(const Masks &masks, const Heads &all, int sample,
                      int head, int query)
      : mask(masks.now()), ofKept(static_cast<float>(mask.factor)),
        perQuery(scorePitch(all.keys) / kMaskDraw),
        first(all.maskRow(sample, head, query + laneOfWarp() / 4) / kMaskDraw +
              laneOfWarp() % 4) {}

  __device__ bool drops() const { return mask.drops(); }
  /// Returns the factor that multiplies the elements that are kept.
  __device__ float factor() const { return ofKept; }

  /// Draws the masks of query `row` + g of the tile for 32 keys from `key` on;
  /// pairs[n] masks keys 8n + 2t and 8n + 2t + 1. Here g = lane / 4 and t =
  /// lane % 4.
  __device__ void ofColumns(int row, int key, KeptPair (&pairs)[4]) const {
    const PhiloxCounter words = mask.wordsOf(
        static_cast<std::uint64_t>(first + row * perQuery + key / kMaskDraw));
#pragma unroll
    for (int n = 0; n < 4; ++n)
      pairs[n] = KeptPair(words[n], mask.limit);
  }

private:
  Mask mask;
  float ofKept;
  std::int64_t perQuery; ///< number of draws per query
  std::int64_t first;    ///< index of this lane's first draw
};

/// Stores one bit per score, which is set if dropout keeps the score. A word
/// holds the bits of one query for 32 keys (a group): bit 16i + 4t + n belongs
/// to key 8n + 2t + i, which is element i of pairs[n] on lane t in
/// CoreMask::ofColumns.
struct KeptScores {
  std::uint32_t *words;
  std::int64_t queries, groups; ///< numbers per head

  /// The number of queries is rounded up to a multiple of kRounded, which is
  /// the size of the largest tile.
  static constexpr std::int64_t kRounded = 128;

  __host__ __device__ KeptScores(const Heads &all, void *memory)
      : words(static_cast<std::uint32_t *>(memory)),
        queries((all.queries + kRounded - 1) / kRounded * kRounded),
        groups(scorePitch(all.keys) / kScoreGroup) {}

  static std::size_t bytes(const Heads &all) {
    const KeptScores scores(all, nullptr);
    return static_cast<std::size_t>(all.batch * all.heads * scores.groups *
                                    scores.queries) *
           sizeof(std::uint32_t);
  }
  /// Returns the word of the first query for the group of `key`.
  __device__ std::uint32_t *at(std::int64_t headOfAll, int key) const {
    return words + (headOfAll * groups + key / kScoreGroup) * queries;
  }
};

/// Stores the masks that CoreMask::ofColumns drew for a query. All lanes must
/// call this function.
/// \param word  the word of the query
__device__ inline void storeKept(std::uint32_t *word,
                                 const KeptPair (&pairs)[4]) {
  const int lane = laneOfWarp() % 4;
  std::uint32_t bits = 0;
#pragma unroll
  for (int n = 0; n < 4; ++n)
    bits |= pairs[n].mask() & 0x00010001U << n;
  bits <<= 4 * lane;
  bits |= __shfl_xor_sync(0xffffffffU, bits, 1);
  bits |= __shfl_xor_sync(0xffffffffU, bits, 2);
  if (lane == 0)
    *word = bits;
}

/// Reads stored bits for a warp's score tile, whose rows are keys.
class StoredMask {
public:
  using Words = uint2;

  /// \param key  the first key of the tile, a multiple of 16
  __device__ StoredMask(const KeptScores &all, const Masks &masks,
                        std::int64_t firstHead, int key)
      : first(all.at(firstHead, key)), perHead(all.groups * all.queries),
        ofKept(static_cast<float>(masks.now().factor)) {
    const int g = laneOfWarp() / 4;
    shift = g % 2 * 16 + g / 2 * 4 + key % kScoreGroup / 8;
  }

  __device__ float factor() const { return ofKept; }

  /// Loads the words of queries 2t and 2t + 1 from `query` on, where t = lane %
  /// 4. A word may be unwritten if its bits have no effect: the query does not
  /// exist (its rows are zeros) or attends to no key of the group (its scores
  /// are -infinity).
  __device__ Words load(int head, int query) const {
    const uint2 words = *reinterpret_cast<const uint2 *>(
        first + head * perHead + query + laneOfWarp() % 4 * 2);
    return {words.x >> shift, words.y >> shift};
  }
  /// With g = lane / 4 and t = lane % 4, sets the dropped elements of key g + 8
  /// * half of strip s to zero: `low` belongs to query 2t, and `high` to query
  /// 2t + 1.
  __device__ void zeroDropped(Words words, int s, int half, float &low,
                              float &high) const {
    const std::uint32_t bit = 1U << (2 * s + half);
    low = (words.x & bit) != 0 ? low : 0.0F;
    high = (words.y & bit) != 0 ? high : 0.0F;
  }

private:
  const std::uint32_t *first;
  std::int64_t perHead;
  float ofKept;
  int shift;
};

/// Sets the dropped elements of `pairs` to zero, without scaling the others.
/// The rows of `pairs` are queries.
/// \param key  the first key of the columns
template <int Strips, int Columns>
__device__ void drop(CorePairs<Strips, Columns> &pairs, const CoreMask &mask,
                     int key) {
#pragma unroll
  for (int s = 0; s < Strips; ++s)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int n = 0; n < Columns / 8; n += 4) {
        KeptPair kept[4];
        mask.ofColumns(s * kStrip + half * 8, key + n * 8, kept);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          pairs[s][n + i][half] &= kept[i].mask();
      }
}

/// These classes replace KeptPair, CoreMask and StoredMask if there is no
/// dropout.
struct AllKept {
  __device__ void zeroDropped(float &, float &) const {}
};
struct NoCoreMask {
  __device__ NoCoreMask(const Masks &, const Heads &, int, int, int) {}
  __device__ float factor() const { return 1.0F; }
  __device__ void ofColumns(int, int, AllKept (&)[4]) const {}
};
struct NoStoredMask {
  struct Words {};
  __device__ NoStoredMask(const KeptScores &, const Masks &, std::int64_t,
                          int) {}
  __device__ float factor() const { return 1.0F; }
  __device__ Words load(int, int) const { return {}; }
  __device__ void zeroDropped(Words, int, int, float &, float &) const {}
};

template <bool Drops>
using KeptPairOf = std::conditional_t<Drops, KeptPair, AllKept>;
template <bool Drops>
using CoreMaskOf = std::conditional_t<Drops, CoreMask, NoCoreMask>;
template <bool Drops>
using StoredMaskOf = std::conditional_t<Drops, StoredMask, NoStoredMask>;

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH

//===- core_masks.cuh - Dropout masks on tensor cores -----------*- C++ -*-===//
//
// A Philox draw masks eight scores of one query: two adjacent scores in each of
// four groups of eight keys (scoreIndex in runtime/random). If queries are the
// rows of a tile, one lane holds all eight scores. If keys are the rows, two
// lanes share the 16 scores of two queries: each lane draws for one query, and
// the lanes exchange half of the words. No warp makes a draw twice.
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

  /// Returns a bit mask of 16 bits for each element, all ones if it is kept.
  __device__ std::uint32_t mask() const {
    __half2 number, least;
    memcpy(static_cast<void *>(&number), &word, sizeof(word));
    memcpy(static_cast<void *>(&least), &limits, sizeof(limits));
    return __hgeu2_mask(__habs2(number), least);
  }
  /// Returns whether each element is kept.
  __device__ Halves halves() const { return reachingHalves(word, limits); }

private:
  std::uint32_t word, limits;
};

/// Draws the dropout masks of a warp's score tile.
/// \tparam KeysAreRows whether keys, instead of queries, are rows of the tile
template <bool KeysAreRows> class CoreMask {
public:
  /// \param query  the first query of the tile
  __device__ CoreMask(const Masks &masks, const Heads &all, int sample,
                      int head, int query)
      : mask(masks.now()), ofKept(static_cast<float>(mask.factor)),
        perQuery(scorePitch(all.keys) / kMaskDraw) {
    const int g = laneOfWarp() / 4, t = laneOfWarp() % 4;
    first =
        all.maskRow(sample, head, query + (KeysAreRows ? t * 2 + g % 2 : g)) /
            kMaskDraw +
        (KeysAreRows ? g / 2 : t);
  }

  __device__ bool drops() const { return mask.drops(); }
  /// Returns the factor for elements that are kept.
  __device__ float factor() const { return ofKept; }

  /// Draws for query `row` + g of the tile and 32 keys from `key` on (g and t:
  /// see tensor_core.cuh). pairs[n] masks keys 8n + 2t and 8n + 2t + 1.
  __device__ void ofColumns(int row, int key, KeptPair (&pairs)[4]) const {
    static_assert(!KeysAreRows);
    const PhiloxCounter words = wordsOf(row, key);
#pragma unroll
    for (int n = 0; n < 4; ++n)
      pairs[n] = KeptPair(words[n], mask.limit);
  }

  /// Draws for the strips of 16 keys from `key` on and eight queries from
  /// `query` on. pairs[s] masks keys g and g + 8 of strip s, each for queries
  /// 2t and 2t + 1. A draw covers two strips; if Strips is 1, another warp
  /// repeats the draw for the other strip.
  template <int Strips>
  __device__ void ofRows(std::int64_t query, int key,
                         KeptPair (&pairs)[Strips][2]) const {
    static_assert(KeysAreRows && Strips <= 2);
    const PhiloxCounter words = wordsOf(query, key / kScoreGroup * kScoreGroup);
    // This lane needs the half words of odd keys if `odd`, else of even keys.
    const bool odd = laneOfWarp() / 4 % 2 != 0;
#pragma unroll
    for (int s = 0; s < Strips; ++s) {
      const bool later = Strips == 1 && key / kStrip % 2 != 0;
      const std::uint32_t upper = later ? words[2] : words[s * 2],
                          lower = later ? words[3] : words[s * 2 + 1];
      const std::uint32_t other = __shfl_xor_sync(
          0xffffffffU, __byte_perm(upper, lower, odd ? 0x5410 : 0x7632), 4);
      pairs[s][0] = KeptPair(__byte_perm(upper, other, odd ? 0x3254 : 0x5410),
                             mask.limit);
      pairs[s][1] = KeptPair(__byte_perm(lower, other, odd ? 0x3276 : 0x7610),
                             mask.limit);
    }
  }

private:
  __device__ PhiloxCounter wordsOf(std::int64_t query, int key) const {
    return mask.wordsOf(
        static_cast<std::uint64_t>(first + query * perQuery + key / kMaskDraw));
  }

  Mask mask;
  float ofKept;
  std::int64_t perQuery; ///< number of draws per query
  std::int64_t first;    ///< index of this lane's first draw
};

/// Sets the dropped elements of pairs whose rows are queries to zero, without
/// scaling the others.
/// \param key  the first key of the columns
template <int Strips, int Columns>
__device__ void drop(CorePairs<Strips, Columns> &pairs,
                     const CoreMask<false> &mask, int key) {
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

/// Replaces KeptPair in kernels without dropout.
struct AllKept {
  __device__ std::uint32_t mask() const { return ~0U; }
  __device__ Halves halves() const { return {true, true}; }
};
/// Replaces CoreMask in kernels without dropout.
struct NoCoreMask {
  __device__ NoCoreMask(const Masks &, const Heads &, int, int, int) {}
  __device__ float factor() const { return 1.0F; }
  __device__ void ofColumns(int, int, AllKept (&)[4]) const {}
  template <int Strips>
  __device__ void ofRows(std::int64_t, int, AllKept (&)[Strips][2]) const {}
};

template <bool Drops>
using KeptPairOf = std::conditional_t<Drops, KeptPair, AllKept>;
template <bool Drops, bool KeysAreRows>
using CoreMaskOf = std::conditional_t<Drops, CoreMask<KeysAreRows>, NoCoreMask>;

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH

//===- core_masks.cuh - Dropout's masks, as tensor cores hold sums *- C++ -*-=//
//
// A draw masks four keys of one query. Lanes that hold those elements draw for
// one another and exchange bits: no element's word is drawn twice in a warp.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH

#include "runtime/cuda/device/core_tiles.cuh"

namespace mtplan::runtime::cuda {

/// Bit i: whether element 4 * draw + i is kept.
inline __device__ std::uint32_t drawn(const Mask &mask, std::int64_t draw) {
  const Several<std::uint32_t, 4> words =
      mask.wordsOf(static_cast<std::uint64_t>(draw));
  std::uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    bits |= (words[i] < mask.limit ? 0U : 1U) << i;
  return bits;
}

/// Which of a lane's elements of a strip are kept: bit 4n + e is for element e
/// of columns 8n ... 8n + 7.
/// \tparam KeysAreRows  of the strip; else queries are
/// \param first  index of the strip's first element in the mask
/// \param keys   from one query's elements to the next's
template <bool KeysAreRows, int Columns>
__device__ std::uint32_t keptOfStrip(const Mask &mask, std::int64_t first,
                                     std::int64_t keys) {
  static_assert(Columns <= 64);
  const int lane = laneOfWarp(), g = lane / 4, t = lane % 4;
  const std::int64_t byColumns = 8 * (KeysAreRows ? keys : 1);
  std::uint32_t bits = 0;
  if (first % 4 != 0 || keys % 4 != 0) {
    // Draws begin at other keys.
#pragma unroll 1
    for (int i = 0; i < Columns / 2; ++i) {
      const int row = g + i % 4 / 2 * 8, column = i / 4 * 8 + t * 2 + i % 2;
      const std::int64_t at =
          first + (KeysAreRows ? column * keys + row : row * keys + column);
      bits |= ((drawn(mask, at / 4) >> (at % 4)) & 1U) << i;
    }
    return bits;
  }
  if constexpr (KeysAreRows) {
    // Four lanes have four keys of two queries and, eight keys on, four more.
    const int mine = g % 4;
    const std::int64_t at =
        first + (t * 2 + mine % 2) * keys + g - mine + mine / 2 * 8;
#pragma unroll 4
    for (int n = 0; n < Columns / 8; ++n)
      bits |= drawn(mask, (at + n * byColumns) / 4) << 4 * n;
    std::uint32_t kept = 0;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      kept |= (__shfl_sync(0xffffffffU, bits, (g - mine + e) * 4 + t) >> mine &
               0x11111111U)
              << e;
    return kept;
  } else {
    // Two lanes have four keys of two queries.
    const bool odd = t % 2 == 1;
    const std::int64_t at = first + (odd ? g + 8 : g) * keys + t / 2 * 4;
#pragma unroll 4
    for (int n = 0; n < Columns / 8; ++n)
      bits |= drawn(mask, (at + n * byColumns) / 4) << 4 * n;
    const std::uint32_t other = __shfl_xor_sync(0xffffffffU, bits, 1);
    const int shift = odd ? 2 : 0;
    return ((odd ? other : bits) >> shift & 0x33333333U) |
           ((odd ? bits : other) >> shift & 0x33333333U) << 2;
  }
}

/// What a warp's sums are multiplied by.
template <bool KeysAreRows, int Strips, int Columns> struct CoreMask {
  std::uint32_t kept[Strips];
  float factor;

  /// \param first  index of the warp's first element in the mask
  __device__ CoreMask(const Masks &masks, std::int64_t first,
                      std::int64_t keys) {
    // Each time anew: registers are for sums.
    const Mask mask = masks.now();
    factor = static_cast<float>(mask.factor);
#pragma unroll
    for (int s = 0; s < Strips; ++s)
      kept[s] =
          mask.drops()
              ? keptOfStrip<KeysAreRows, Columns>(
                    mask, first + s * kStrip * (KeysAreRows ? 1 : keys), keys)
              : ~0U;
  }
  __device__ float of(int strip, int n, int e) const {
    return ((kept[strip] >> (4 * n + e)) & 1U) != 0 ? factor : 0.0F;
  }
};

/// Of kernels that drop nothing.
struct NoCoreMask {
  __device__ NoCoreMask(const Masks &, std::int64_t, std::int64_t) {}
  __device__ float of(int, int, int) const { return 1.0F; }
};

template <bool Drops, bool KeysAreRows, int Strips, int Columns>
using CoreMaskOf =
    std::conditional_t<Drops, CoreMask<KeysAreRows, Strips, Columns>,
                       NoCoreMask>;

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_CORE_MASKS_CUH

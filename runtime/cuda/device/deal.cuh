//===- deal.cuh - Many tensors for one kernel -------------------*- C++ -*-===//
//
// A kernel that is queued takes some microseconds, however little it does. What
// many small tensors need alike is one kernel over all of them: a table in the
// device's memory says which tensor a block works on, and where in it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_DEAL_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_DEAL_CUH

#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

/// A block's part of a tensor: the `piece`-th of pieces of one size.
struct Share {
  std::int32_t tensor, piece;
};

/// \tparam Item  what a kernel is told of a tensor, with its `elements`
template <typename Item> struct Deal {
  const Item *items;
  const Share *shares; ///< by block
  std::int64_t blocks;
};

/// Threads of a block, and packs of each of them.
inline constexpr unsigned kDealThreads = 256;
inline constexpr std::int64_t kDealPacks = 8;
/// Elements of a piece; the last of a tensor may have fewer.
inline constexpr std::int64_t kDealt = kDealThreads * kDealPacks * kPack;

/// Calls `use(first, count)` for this thread's packs of a piece.
template <typename Use>
__device__ void packsOfPiece(std::int64_t piece, std::int64_t elements,
                             Use use) {
  for (std::int64_t pack = 0; pack < kDealPacks; ++pack) {
    const std::int64_t first =
        piece * kDealt +
        (pack * kDealThreads + std::int64_t{threadIdx.x}) * kPack;
    if (first >= elements)
      break;
    use(first, packAt(first, elements));
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_DEAL_CUH

//===- collectives.cuh - Collectives of ranks that stand alone --*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_COLLECTIVES_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_COLLECTIVES_CUH

#include <functional>
#include <utility>

#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

/// Splits the world: this rank goes to the communicator that names it. Every
/// rank has to call it.
/// \return null, and a size of 0, if none does
inline std::pair<ncclComm_t, int>
communicatorOf(const Rank &rank,
               const std::vector<std::vector<int>> &communicators) {
  int color = NCCL_SPLIT_NOCOLOR, key = 0, size = 0;
  for (std::size_t c = 0; c < communicators.size(); ++c)
    for (std::size_t i = 0; i < communicators[c].size(); ++i)
      if (communicators[c][i] == rank.rank) {
        color = static_cast<int>(c);
        key = static_cast<int>(i);
        size = static_cast<int>(communicators[c].size());
      }
  ncclComm_t own = nullptr;
  MTPLAN_NCCL(ncclCommSplit(rank.world, color, key, &own, nullptr));
  return {own, size};
}

/// The next of the rank's groups.
inline void join(Rank &rank, const std::vector<std::vector<int>> &all) {
  const auto [communicator, size] = communicatorOf(rank, all);
  rank.groups.push_back(communicator);
  rank.groupSizes.push_back(size);
}

inline ncclDataType_t ncclTypeOf(ElementType type) {
  return type == ElementType::f64    ? ncclFloat64
         : type == ElementType::f32  ? ncclFloat32
         : type == ElementType::f16  ? ncclFloat16
         : type == ElementType::bf16 ? ncclBfloat16
                                     : ncclInt32;
}

/// [inner][outer][width] to [outer][inner][width]
inline void swapRows(const Run &now, const Tensor &from, const Tensor &to,
                     std::int64_t outer, std::int64_t inner,
                     std::int64_t width) {
  const Strides source{2, {outer, inner}, {width, outer * width}, 0, width};
  // Through float neither f64 nor i32 would come as it went.
  if (to.type == ElementType::f64 || to.type == ElementType::i32)
    take<double>(now.stream(), from, to, outer * inner, source);
  else
    take<float>(now.stream(), from, to, outer * inner, source);
}

/// Collectives on the run's stream from here to groupEnd() are one launch of
/// NCCL's. None may write what another one reads or writes: operands are
/// rearranged before the launch, and results after it.
inline void groupStart(const Run &now) {
  now.lane().isTogether = true;
  MTPLAN_NCCL(ncclGroupStart());
}
inline void groupEnd(const Run &now) {
  Lane &lane = now.lane();
  MTPLAN_NCCL(ncclGroupEnd());
  for (const std::function<void()> &rearrange : lane.behind)
    rearrange();
  lane.behind.clear();
  lane.exchanged = 0;
  lane.isTogether = false;
}

/// Returns memory in which a collective's data are rearranged, beside the data
/// of others in the same launch. The launch is split where that is too much.
inline void *exchangeRoom(const Run &now, std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{64} << 20; // bytes
  Lane &lane = now.lane();
  if (!lane.isTogether)
    return lane.exchange.atLeast(bytes);
  if (lane.exchanged > 0 && lane.exchanged + bytes > kMost) {
    groupEnd(now);
    groupStart(now);
  }
  auto *all = static_cast<std::byte *>(
      lane.exchange.atLeast(lane.exchanged + roundedUp(bytes)));
  return all + std::exchange(lane.exchanged, lane.exchanged + roundedUp(bytes));
}

inline void allReduce(const Run &now, int group, const Tensor &from,
                      const Tensor &to, std::int64_t elements,
                      ncclRedOp_t how) {
  MTPLAN_NCCL(ncclAllReduce(
      from.data, to.data, static_cast<std::size_t>(elements),
      ncclTypeOf(to.type), how,
      now.rank.groups[static_cast<std::size_t>(group)], now.stream()));
}

/// [outer][inner] of each rank to [outer][ranks][inner]
inline void allGather(const Run &now, int group, const Tensor &from,
                      const Tensor &to, std::int64_t outer,
                      std::int64_t inner) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t ranks = now.rank.groupSizes[g];
  Tensor all = to;
  if (outer > 1)
    all.data = exchangeRoom(now, bytesOf(to, ranks * outer * inner));
  MTPLAN_NCCL(ncclAllGather(
      from.data, all.data, static_cast<std::size_t>(outer * inner),
      ncclTypeOf(to.type), now.rank.groups[g], now.stream()));
  if (outer == 1)
    return;
  if (now.lane().isTogether)
    now.lane().behind.emplace_back(
        [=] { swapRows(now, all, to, outer, ranks, inner); });
  else
    swapRows(now, all, to, outer, ranks, inner);
}

/// [outer][ranks][inner] of each rank to [outer][inner], reduced
inline void reduceScatter(const Run &now, int group, const Tensor &from,
                          const Tensor &to, std::int64_t outer,
                          std::int64_t inner, ncclRedOp_t how) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t ranks = now.rank.groupSizes[g];
  Tensor all = from;
  if (outer > 1) {
    all.data = exchangeRoom(now, bytesOf(from, ranks * outer * inner));
    swapRows(now, from, all, ranks, outer, inner);
  }
  MTPLAN_NCCL(ncclReduceScatter(
      all.data, to.data, static_cast<std::size_t>(outer * inner),
      ncclTypeOf(to.type), how, now.rank.groups[g], now.stream()));
}

/// [rows][ranks][width], of which every rank gets its part, to
/// [newRows][ranks][newWidth], in which every rank's part lies side by side
inline void allToAll(const Run &now, int group, const Tensor &from,
                     const Tensor &to, std::int64_t rows, std::int64_t width,
                     std::int64_t newRows, std::int64_t newWidth) {
  const auto g = static_cast<std::size_t>(group);
  const std::int64_t ranks = now.rank.groupSizes[g], part = rows * width;
  const std::size_t bytes = roundedUp(bytesOf(from, ranks * part));
  auto *room = static_cast<std::byte *>(now.lane().exchange.atLeast(2 * bytes));
  const Tensor packed{room, from.type}, received{room + bytes, from.type};
  swapRows(now, from, packed, ranks, rows, width);
  MTPLAN_NCCL(ncclGroupStart());
  for (int other = 0; other < static_cast<int>(ranks); ++other) {
    const auto count = static_cast<std::size_t>(part);
    MTPLAN_NCCL(ncclSend(plus(packed.data, other * part, from.type), count,
                         ncclTypeOf(from.type), other, now.rank.groups[g],
                         now.stream()));
    MTPLAN_NCCL(ncclRecv(plus(received.data, other * part, from.type), count,
                         ncclTypeOf(from.type), other, now.rank.groups[g],
                         now.stream()));
  }
  MTPLAN_NCCL(ncclGroupEnd());
  swapRows(now, received, to, newRows, ranks, newWidth);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_COLLECTIVES_CUH

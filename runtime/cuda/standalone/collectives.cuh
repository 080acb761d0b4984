//===- collectives.cuh - Collectives and messages of ranks ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_COLLECTIVES_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_COLLECTIVES_CUH

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

/// Splits the communicator of all ranks. Every rank must call this function.
/// \param communicators  the ranks of each new communicator
/// \return the communicator of this rank and its size, or null and 0 if the
/// rank is in none of the new communicators
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

/// Creates the process groups `all`, and appends this rank's group to
/// Rank::groups. Every rank must call this function.
inline void join(Rank &rank, const std::vector<std::vector<int>> &all) {
  const auto [communicator, size] = communicatorOf(rank, all);
  rank.groups.push_back(communicator);
  rank.groupSizes.push_back(size);
}

/// Returns the coordinate of rank `number` on an axis of the mesh.
inline int coordinateOf(const Rank &rank, int number, std::size_t axis) {
  for (std::size_t a = rank.sizes.size() - 1; a > axis; --a)
    number /= rank.sizes[a];
  return number % rank.sizes[axis];
}

/// Creates communicators along `axes`, and joins the communicator of this rank.
/// The ranks of a communicator differ only in their coordinates on `axes`.
/// Every rank must call this function.
inline void joinAlong(Rank &rank, std::initializer_list<int> axes) {
  std::map<std::vector<int>, std::vector<int>> all; // by other coordinates
  for (int number = 0; number < rank.ranks; ++number) {
    std::vector<int> others;
    for (std::size_t a = 0; a < rank.sizes.size(); ++a)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(a)) ==
          axes.end())
        others.push_back(coordinateOf(rank, number, a));
    all[others].push_back(number);
  }
  std::vector<std::vector<int>> communicators;
  for (const auto &[others, ranks] : all)
    communicators.push_back(ranks);
  join(rank, communicators);
}

/// Returns the ranks with coordinate `place` on an axis, in ascending order.
inline std::vector<int> ranksAt(const Rank &rank, int axis, int place) {
  std::vector<int> ranks;
  for (int number = 0; number < rank.ranks; ++number)
    if (coordinateOf(rank, number, static_cast<std::size_t>(axis)) == place)
      ranks.push_back(number);
  return ranks;
}

inline ncclDataType_t ncclTypeOf(ElementType type) {
  return type == ElementType::f64    ? ncclFloat64
         : type == ElementType::f32  ? ncclFloat32
         : type == ElementType::f16  ? ncclFloat16
         : type == ElementType::bf16 ? ncclBfloat16
                                     : ncclInt32;
}

/// Transposes [inner][outer][width] to [outer][inner][width].
inline void swapRows(const Run &now, const Tensor &from, const Tensor &to,
                     std::int64_t outer, std::int64_t inner,
                     std::int64_t width) {
  const Strides source{2, {outer, inner}, {width, outer * width}, 0, width};
  // A float represents neither every f64 nor every i32.
  if (to.type == ElementType::f64 || to.type == ElementType::i32)
    take<double>(now.stream(), from, to, outer * inner, source);
  else
    take<float>(now.stream(), from, to, outer * inner, source);
}

/// Groups the collectives on the run's stream up to groupEnd() into one NCCL
/// launch. No collective may be an allToAll or write a buffer of another
/// collective, because all operands are transposed before the launch, and all
/// results after it.
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

/// Returns memory for the transposed data of a collective. Collectives in one
/// launch receive disjoint memory. A launch that needs more than kMost bytes is
/// split.
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

/// Gathers [outer][inner] of each rank into [outer][ranks][inner].
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

/// Reduces [outer][ranks][inner] over the ranks, and scatters the result into
/// [outer][inner] of each rank.
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

/// Sends slice [:][r][:] of [rows][ranks][width] to rank r. The received
/// slices, in the order of ranks, are the slices [:][r][:] of
/// [newRows][ranks][newWidth].
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

/// Creates the lines between from[i] and to[i], the ranks of two pipeline
/// stages, and returns this rank's line, if this rank has one. Every rank must
/// call this function.
/// \param sent  bytes that a rank of `from` sends per step
inline Line lineBetween(const Rank &rank, const std::vector<int> &from,
                        const std::vector<int> &to, std::size_t sent) {
  std::vector<std::vector<int>> pairs;
  bool sends = false;
  Line line;
  for (std::size_t i = 0; i < from.size(); ++i) {
    pairs.push_back({from[i], to[i]});
    if (from[i] == rank.rank) {
      sends = true;
      line.other = 1;
    }
  }
  line.communicator = communicatorOf(rank, pairs).first;
  if (sends) {
    MTPLAN_CUDA(cudaStreamCreateWithFlags(&line.stream, cudaStreamNonBlocking));
    MTPLAN_CUDA(cudaEventCreateWithFlags(&line.ready, cudaEventDisableTiming));
    line.copies.atLeast(sent);
  }
  return line;
}

/// Establishes NCCL's connections: captures a transfer of one byte on every
/// line, but never launches the graph. A connection blocks both ranks until it
/// is established. During a step, such a wait could deadlock, because either
/// rank may have to do other work first.
inline void connectLines(Rank &rank) {
  void *const byte = rank.streams.lanes.front().exchange.atLeast(1);
  cudaStream_t stream = rank.stream();
  cudaGraph_t graph = nullptr;
  MTPLAN_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  for (const Line &line : rank.lines) {
    if (!line.communicator)
      continue;
    if (line.stream)
      MTPLAN_NCCL(
          ncclSend(byte, 1, ncclInt8, line.other, line.communicator, stream));
    else
      MTPLAN_NCCL(
          ncclRecv(byte, 1, ncclInt8, line.other, line.communicator, stream));
  }
  MTPLAN_CUDA(cudaStreamEndCapture(stream, &graph));
  MTPLAN_CUDA(cudaGraphDestroy(graph));
}

/// Queues the copy of a message, and then its send on the line's own stream, so
/// that computation does not wait for the send.
inline void send(const Run &now, int line, const Tensor &from,
                 std::int64_t elements) {
  Line &own = now.rank.lines[static_cast<std::size_t>(line)];
  const std::size_t bytes = bytesOf(from, elements);
  std::byte *copy = own.copies.data + own.copied;
  own.copied += roundedUp(bytes);
  MTPLAN_CUDA(cudaMemcpyAsync(copy, from.data, bytes, cudaMemcpyDeviceToDevice,
                              now.stream()));
  MTPLAN_CUDA(cudaEventRecord(own.ready, now.stream()));
  MTPLAN_CUDA(cudaStreamWaitEvent(own.stream, own.ready, 0));
  MTPLAN_NCCL(ncclSend(copy, static_cast<std::size_t>(elements),
                       ncclTypeOf(from.type), own.other, own.communicator,
                       own.stream));
}

inline void receive(const Run &now, int line, const Tensor &to,
                    std::int64_t elements) {
  const Line &own = now.rank.lines[static_cast<std::size_t>(line)];
  MTPLAN_NCCL(ncclRecv(to.data, static_cast<std::size_t>(elements),
                       ncclTypeOf(to.type), own.other, own.communicator,
                       now.stream()));
}

/// Makes the plan's first stream wait for all sends.
inline void joinLines(const Rank &rank) {
  for (const Line &line : rank.lines)
    if (line.copied > 0) {
      MTPLAN_CUDA(cudaEventRecord(line.ready, line.stream));
      MTPLAN_CUDA(cudaStreamWaitEvent(rank.stream(), line.ready, 0));
    }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_COLLECTIVES_CUH

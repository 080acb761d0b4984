//===- nccl_group.cpp - The collectives of NCCL ---------------------------===//

#include "runtime/cuda/collectives/nccl/nccl_group.h"

#include <utility>

#include "runtime/cuda/collectives/place_kernels.h"
#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

namespace {

ncclDataType_t typeOf(ElementType type) {
  return type == ElementType::f64    ? ncclFloat64
         : type == ElementType::f32  ? ncclFloat32
         : type == ElementType::f16  ? ncclFloat16
         : type == ElementType::bf16 ? ncclBfloat16
                                     : ncclInt32;
}

ncclRedOp_t operationOf(Reduction reduction) {
  return reduction == Reduction::sum   ? ncclSum
         : reduction == Reduction::max ? ncclMax
                                       : ncclAvg;
}

std::size_t countOf(Pieces pieces) {
  return static_cast<std::size_t>(pieces.outer * pieces.inner);
}

/// Returns the size in bytes of the transposed data of all ranks, or 0 for a
/// single row, which needs no transposition.
std::size_t roomToRearrange(const Pieces &pieces, int places) {
  return pieces.outer > 1
             ? roundedUp(countOf(pieces) * static_cast<std::size_t>(places) *
                         static_cast<std::size_t>(bytesOf(pieces.type)))
             : 0;
}

bool isFault(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

/// Implements all-to-all by ncclSend and ncclRecv, because older supported
/// versions of NCCL have no all-to-all.
ncclResult_t exchange(const Pieces &pieces, int places, const void *packed,
                      void *received, ncclComm_t comm, cudaStream_t stream) {
  const ncclDataType_t type = typeOf(pieces.type);
  const std::size_t count = countOf(pieces);
  const std::size_t bytes =
      count * static_cast<std::size_t>(bytesOf(pieces.type));
  const auto *from = static_cast<const std::byte *>(packed);
  auto *to = static_cast<std::byte *>(received);
  for (int peer = 0; peer < places; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * bytes;
    for (const ncclResult_t result :
         {ncclSend(from + at, count, type, peer, comm, stream),
          ncclRecv(to + at, count, type, peer, comm, stream)})
      if (isFault(result))
        return result;
  }
  return ncclSuccess;
}

/// Queues a call. A tensor that holds the pieces of all ranks must have the
/// layout [ranks][outer][inner].
ncclResult_t queue(const Call &call, int places, const void *from, void *to,
                   ncclComm_t comm, cudaStream_t stream) {
  const std::size_t count = countOf(call.pieces);
  const ncclDataType_t type = typeOf(call.pieces.type);
  const ncclRedOp_t operation = operationOf(call.reduction);
  switch (call.kind) {
  case CallKind::allReduce:
    return ncclAllReduce(from, to, count, type, operation, comm, stream);
  case CallKind::reduce:
    return ncclReduce(from, to, count, type, operation, call.root, comm,
                      stream);
  case CallKind::allGather:
    return ncclAllGather(from, to, count, type, comm, stream);
  case CallKind::reduceScatter:
    return ncclReduceScatter(from, to, count, type, operation, comm, stream);
  case CallKind::allToAll:
    return exchange(call.pieces, places, from, to, comm, stream);
  case CallKind::broadcast:
    return ncclBroadcast(from, to, count, type, call.root, comm, stream);
  case CallKind::barrier:
    break;
  }
  return ncclSuccess;
}

} // namespace

// The link keeps the previous memory, because calls may still use this memory.
// Freeing the memory would have to wait for the device, and thus for other
// ranks.
std::byte *NcclGroup::Scratch::of(std::size_t bytes, const NcclGroup &group) {
  if (bytes > size) {
    memory = group.link->allocate(bytes, group.context->registersMemory);
    size = bytes;
  }
  return memory;
}

NcclGroup::NcclGroup(std::shared_ptr<NcclLink> theLink, GroupName group,
                     int place, SharedContext theContext)
    : link(std::move(theLink)), its(std::move(group)), own(place),
      context(std::move(theContext)) {}

void NcclGroup::registerMemory(void *data, std::int64_t bytes) {
  if (context->registersMemory)
    link->registerMemory(data, static_cast<std::size_t>(bytes));
}

void NcclGroup::make(const Call &call, const void *in, void *out) {
  checkCall(call, its);
  const Work work{call, in, out};
  if (collected)
    collected->push_back(work);
  else
    run({&work, 1});
}

void NcclGroup::together(const std::function<void()> &theCalls) {
  if (!joins() || collected)
    return theCalls();
  struct Collecting {
    explicit Collecting(std::vector<Work> *&theWhere) : where(theWhere) {
      where = &works;
    }
    ~Collecting() { where = nullptr; }
    Collecting(const Collecting &) = delete;
    Collecting &operator=(const Collecting &) = delete;
    std::vector<Work> works;
    std::vector<Work> *&where;
  };
  Collecting collecting(collected);
  theCalls();
  const std::span<const Work> all = collecting.works;
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    std::size_t room = 0;
    const auto fits = [&](std::size_t more) {
      return more == 0 || room == 0 || room + more <= context->roomToJoin;
    };
    for (; end < all.size() && fits(roomFor(all[end].call)); ++end)
      room += roomFor(all[end].call);
    run(all.subspan(first, end - first));
  }
}

std::size_t NcclGroup::roomBefore(const Call &call) const {
  return call.kind == CallKind::reduceScatter || call.kind == CallKind::allToAll
             ? roomToRearrange(call.pieces, size())
             : 0;
}

std::size_t NcclGroup::roomAfter(const Call &call) const {
  return call.kind == CallKind::allGather || call.kind == CallKind::allToAll
             ? roomToRearrange(call.pieces, size())
             : 0;
}

std::string NcclGroup::wordsOf(std::span<const Work> works) const {
  std::string words = "call " + std::to_string(calls) + " on GPUs, " +
                      runtime::wordsOf(works.front().call);
  if (works.size() > 1)
    words += ", with " + std::to_string(works.size() - 1) + " more";
  return words;
}

// NCCL expects the layout [ranks][outer][inner], so tensors with the layout
// [outer][ranks][inner] are transposed.
void NcclGroup::run(std::span<const Work> works) {
  cudaStream_t stream = context->stream().get();
  link->begin(wordsOf(works), stream);
  calls += std::ssize(works);
  std::size_t packedRoom = 0, unpackedRoom = 0;
  bool sends = false;
  for (const Work &work : works) {
    packedRoom += roomBefore(work.call);
    unpackedRoom += roomAfter(work.call);
    sends |= countOf(work.call.pieces) > 0;
  }
  const bool rearranges = packedRoom + unpackedRoom > 0;
  // The previous call may have used the scratch memory on another stream.
  if (rearranges && scratchsCapture == captureOf(stream))
    MTPLAN_CUDA(cudaStreamWaitEvent(stream, scratchIsFree.get(), 0));
  std::byte *packed = before.of(packedRoom, *this);
  std::byte *unpacked = after.of(unpackedRoom, *this);
  std::vector<std::pair<const void *, void *>> data;
  for (const Work &work : works) {
    const Pieces &pieces = work.call.pieces;
    auto &[from, to] = data.emplace_back(work.in, work.out);
    if (const std::size_t room = roomBefore(work.call)) {
      exchangeDimensions(*context, pieces.type, from, packed, pieces.outer,
                         size(), pieces.inner);
      from = std::exchange(packed, packed + room);
    }
    if (const std::size_t room = roomAfter(work.call))
      to = std::exchange(unpacked, unpacked + room);
  }
  if (sends)
    link->call([&](ncclComm_t comm) {
      for (std::size_t i = 0; i < works.size(); ++i) {
        if (countOf(works[i].call.pieces) == 0)
          continue;
        const ncclResult_t result = queue(works[i].call, size(), data[i].first,
                                          data[i].second, comm, stream);
        if (isFault(result))
          return result;
      }
      return ncclSuccess;
    });
  for (std::size_t i = 0; i < works.size(); ++i)
    if (data[i].second != works[i].out)
      exchangeDimensions(*context, works[i].call.pieces.type, data[i].second,
                         works[i].out, size(), works[i].call.pieces.outer,
                         works[i].call.pieces.inner);
  if (rearranges) {
    MTPLAN_CUDA(cudaEventRecord(scratchIsFree.get(), stream));
    scratchsCapture = captureOf(stream);
  }
  link->end(stream);
}

} // namespace mtplan::runtime::cuda

//===- nccl_group.cpp - The collectives of NCCL ---------------------------===//

#include "runtime/cuda/collectives/nccl/nccl_group.h"

#include <utility>

#include "runtime/cuda/collectives/place_kernels.h"
#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

namespace {

ncclDataType_t typeOf(ElementType type) {
  switch (type) {
  case ElementType::f64:
    return ncclFloat64;
  case ElementType::f32:
    return ncclFloat32;
  case ElementType::f16:
    return ncclFloat16;
  case ElementType::bf16:
    return ncclBfloat16;
  case ElementType::i32:
    return ncclInt32;
  }
  return ncclFloat32;
}

ncclRedOp_t operationOf(Reduction reduction) {
  switch (reduction) {
  case Reduction::sum:
    return ncclSum;
  case Reduction::max:
    return ncclMax;
  case Reduction::avg:
    return ncclAvg;
  }
  return ncclSum;
}

std::size_t countOf(Pieces pieces) {
  return static_cast<std::size_t>(pieces.outer * pieces.inner);
}

} // namespace

// A larger one is made without giving back the smaller one: calls may still be
// using it, and to wait for the device is to wait for other ranks.
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

void NcclGroup::make(Work work) {
  checkCall(work.call, its);
  if (collected)
    collected->push_back(std::move(work));
  else
    run({&work, 1});
}

void NcclGroup::together(const std::function<void()> &theCalls) {
  if (!joins() || collected)
    return theCalls();
  /// Until what is collected is made, or is not.
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
    for (; end < all.size() && fits(roomFor(all[end])); ++end)
      room += roomFor(all[end]);
    run(all.subspan(first, end - first));
  }
}

std::size_t NcclGroup::roomFor(const Work &work, bool isWanted) const {
  const Pieces &pieces = work.call.pieces;
  return isWanted && pieces.outer > 1
             ? roundedUp(countOf(pieces) * static_cast<std::size_t>(size()) *
                         static_cast<std::size_t>(bytesOf(pieces.type)))
             : 0;
}

std::string NcclGroup::wordsOf(std::span<const Work> works) const {
  std::string words = "call " + std::to_string(calls) + " on GPUs, " +
                      runtime::wordsOf(works.front().call);
  if (works.size() > 1)
    words += ", with " + std::to_string(works.size() - 1) + " more";
  return words;
}

// [outer][size][inner] goes in and comes out as [size][outer][inner].
void NcclGroup::run(std::span<const Work> works) {
  cudaStream_t stream = context->stream().get();
  link->begin(wordsOf(works), stream);
  calls += std::ssize(works);
  std::size_t packedRoom = 0, unpackedRoom = 0;
  bool sends = false;
  for (const Work &work : works) {
    packedRoom += roomFor(work, work.packs);
    unpackedRoom += roomFor(work, work.unpacks);
    sends |= countOf(work.call.pieces) > 0;
  }
  const bool rearranges = packedRoom + unpackedRoom > 0;
  // Calls follow each other, their streams need not.
  if (rearranges && scratchsCapture == captureOf(stream))
    MTPLAN_CUDA(cudaStreamWaitEvent(stream, scratchIsFree.get(), 0));
  std::byte *packed = before.of(packedRoom, *this);
  std::byte *unpacked = after.of(unpackedRoom, *this);
  std::vector<std::pair<const void *, void *>> data;
  for (const Work &work : works) {
    const Pieces &pieces = work.call.pieces;
    auto &[from, to] = data.emplace_back(work.in, work.out);
    if (const std::size_t room = roomFor(work, work.packs)) {
      exchangeDimensions(*context, pieces.type, from, packed, pieces.outer,
                         size(), pieces.inner);
      from = std::exchange(packed, packed + room);
    }
    if (const std::size_t room = roomFor(work, work.unpacks))
      to = std::exchange(unpacked, unpacked + room);
  }
  if (sends)
    link->call([&](ncclComm_t comm) {
      for (std::size_t i = 0; i < works.size(); ++i) {
        if (countOf(works[i].call.pieces) == 0)
          continue;
        const ncclResult_t result =
            works[i].make(data[i].first, data[i].second, comm, stream);
        if (result != ncclSuccess && result != ncclInProgress)
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

void NcclGroup::allReduce(const std::string &label, const void *in, void *out,
                          Pieces pieces, Reduction reduction) {
  make({{CallKind::allReduce, label, pieces, reduction},
        in,
        out,
        false,
        false,
        [=](const void *from, void *to, ncclComm_t comm, cudaStream_t stream) {
          return ncclAllReduce(from, to, countOf(pieces), typeOf(pieces.type),
                               operationOf(reduction), comm, stream);
        }});
}

void NcclGroup::reduce(const std::string &label, const void *in, void *out,
                       Pieces pieces, Reduction reduction, int root) {
  make({{CallKind::reduce, label, pieces, reduction, root},
        in,
        out,
        false,
        false,
        [=](const void *from, void *to, ncclComm_t comm, cudaStream_t stream) {
          return ncclReduce(from, to, countOf(pieces), typeOf(pieces.type),
                            operationOf(reduction), root, comm, stream);
        }});
}

void NcclGroup::allGather(const std::string &label, const void *in, void *out,
                          Pieces pieces) {
  make({{CallKind::allGather, label, pieces},
        in,
        out,
        false,
        true,
        [=](const void *from, void *to, ncclComm_t comm, cudaStream_t stream) {
          return ncclAllGather(from, to, countOf(pieces), typeOf(pieces.type),
                               comm, stream);
        }});
}

void NcclGroup::reduceScatter(const std::string &label, const void *in,
                              void *out, Pieces pieces, Reduction reduction) {
  make({{CallKind::reduceScatter, label, pieces, reduction},
        in,
        out,
        true,
        false,
        [=](const void *from, void *to, ncclComm_t comm, cudaStream_t stream) {
          return ncclReduceScatter(from, to, countOf(pieces),
                                   typeOf(pieces.type), operationOf(reduction),
                                   comm, stream);
        }});
}

// By messages, which every version of NCCL has.
void NcclGroup::allToAll(const std::string &label, const void *in, void *out,
                         Pieces pieces) {
  const auto messages =
      [pieces, places = size()](const void *packed, void *received,
                                ncclComm_t comm, cudaStream_t stream) {
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
            if (result != ncclSuccess && result != ncclInProgress)
              return result;
        }
        return ncclSuccess;
      };
  make({{CallKind::allToAll, label, pieces}, in, out, true, true, messages});
}

void NcclGroup::broadcast(const std::string &label, void *data, Pieces pieces,
                          int root) {
  make({{CallKind::broadcast, label, pieces, Reduction::sum, root},
        data,
        data,
        false,
        false,
        [=](const void *from, void *to, ncclComm_t comm, cudaStream_t stream) {
          return ncclBroadcast(from, to, countOf(pieces), typeOf(pieces.type),
                               root, comm, stream);
        }});
}

} // namespace mtplan::runtime::cuda

//===- nccl_group.cpp - The collectives of NCCL ---------------------------===//

#include "runtime/cuda/collectives/nccl/nccl_group.h"

#include "runtime/cuda/collectives/place_kernels.h"

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

/// A call from its first work on the stream to its last.
class NcclGroup::Session {
public:
  Session(NcclGroup &itsGroup, const Call &call)
      : group(itsGroup), pieces(call.pieces),
        stream(group.context->stream().get()) {
    checkCall(call, group.its);
    group.link->begin("call " + std::to_string(group.calls++) + " on GPUs, " +
                          wordsOf(call),
                      stream);
  }
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// Without a fault, at the end.
  void end() {
    if (usesScratch) {
      MTPLAN_CUDA(cudaEventRecord(group.scratchIsFree.get(), stream));
      group.scratchsCapture = captureOf(stream);
    }
    group.link->end(stream);
  }

  void call(const NcclLink::Make &make) const {
    if (countOf(pieces) > 0)
      group.link->call(make);
  }

  /// [outer][size][inner], rearranged to [size][outer][inner].
  const void *packed(const void *in) {
    if (pieces.outer == 1)
      return in;
    std::byte *out = scratch(group.before);
    exchangeDimensions(*group.context, pieces.type, in, out, pieces.outer,
                       group.size(), pieces.inner);
    return out;
  }
  /// Where [size][outer][inner] is to be put, for unpack().
  void *unpacked(void *out) {
    return pieces.outer == 1 ? out : scratch(group.after);
  }
  void unpack(const void *from, void *out) const {
    if (from != out)
      exchangeDimensions(*group.context, pieces.type, from, out, group.size(),
                         pieces.outer, pieces.inner);
  }

  const cudaStream_t &on() const { return stream; }

private:
  std::byte *scratch(Scratch &which) {
    // Calls follow each other, their streams need not.
    if (!usesScratch && group.scratchsCapture == captureOf(stream))
      MTPLAN_CUDA(cudaStreamWaitEvent(stream, group.scratchIsFree.get(), 0));
    usesScratch = true;
    return which.of(countOf(pieces) * static_cast<std::size_t>(group.size()) *
                        static_cast<std::size_t>(bytesOf(pieces.type)),
                    group);
  }

  NcclGroup &group;
  const Pieces pieces;
  const cudaStream_t stream;
  bool usesScratch = false;
};

NcclGroup::NcclGroup(std::shared_ptr<NcclLink> theLink, GroupName group,
                     int place, SharedContext theContext)
    : link(std::move(theLink)), its(std::move(group)), own(place),
      context(std::move(theContext)) {}

void NcclGroup::registerMemory(void *data, std::int64_t bytes) {
  if (context->registersMemory)
    link->registerMemory(data, static_cast<std::size_t>(bytes));
}

void NcclGroup::allReduce(const std::string &label, const void *in, void *out,
                          Pieces pieces, Reduction reduction) {
  Session session(*this, {CallKind::allReduce, label, pieces, reduction});
  session.call([&](ncclComm_t comm) {
    return ncclAllReduce(in, out, countOf(pieces), typeOf(pieces.type),
                         operationOf(reduction), comm, session.on());
  });
  session.end();
}

void NcclGroup::reduce(const std::string &label, const void *in, void *out,
                       Pieces pieces, Reduction reduction, int root) {
  Session session(*this, {CallKind::reduce, label, pieces, reduction, root});
  session.call([&](ncclComm_t comm) {
    return ncclReduce(in, out, countOf(pieces), typeOf(pieces.type),
                      operationOf(reduction), root, comm, session.on());
  });
  session.end();
}

void NcclGroup::allGather(const std::string &label, const void *in, void *out,
                          Pieces pieces) {
  Session session(*this, {CallKind::allGather, label, pieces});
  void *const to = session.unpacked(out);
  session.call([&](ncclComm_t comm) {
    return ncclAllGather(in, to, countOf(pieces), typeOf(pieces.type), comm,
                         session.on());
  });
  session.unpack(to, out);
  session.end();
}

void NcclGroup::reduceScatter(const std::string &label, const void *in,
                              void *out, Pieces pieces, Reduction reduction) {
  Session session(*this, {CallKind::reduceScatter, label, pieces, reduction});
  const void *const from = session.packed(in);
  session.call([&](ncclComm_t comm) {
    return ncclReduceScatter(from, out, countOf(pieces), typeOf(pieces.type),
                             operationOf(reduction), comm, session.on());
  });
  session.end();
}

// By messages, which every version of NCCL has.
void NcclGroup::allToAll(const std::string &label, const void *in, void *out,
                         Pieces pieces) {
  Session session(*this, {CallKind::allToAll, label, pieces});
  const auto *from = static_cast<const std::byte *>(session.packed(in));
  auto *to = static_cast<std::byte *>(session.unpacked(out));
  const std::size_t count = countOf(pieces);
  const std::size_t bytes =
      count * static_cast<std::size_t>(bytesOf(pieces.type));
  session.call([&](ncclComm_t comm) {
    for (int peer = 0; peer < size(); ++peer) {
      const std::size_t at = static_cast<std::size_t>(peer) * bytes;
      const ncclDataType_t type = typeOf(pieces.type);
      for (const ncclResult_t result :
           {ncclSend(from + at, count, type, peer, comm, session.on()),
            ncclRecv(to + at, count, type, peer, comm, session.on())})
        if (result != ncclSuccess)
          return result;
    }
    return ncclSuccess;
  });
  session.unpack(to, out);
  session.end();
}

void NcclGroup::broadcast(const std::string &label, void *data, Pieces pieces,
                          int root) {
  Session session(*this,
                  {CallKind::broadcast, label, pieces, Reduction::sum, root});
  session.call([&](ncclComm_t comm) {
    return ncclBroadcast(data, data, countOf(pieces), typeOf(pieces.type), root,
                         comm, session.on());
  });
  session.end();
}

} // namespace mtplan::runtime::cuda

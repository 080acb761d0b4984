//===- nccl_clique.cpp - State that a communicator's ranks share ----------===//

#include "tests/emulator/nccl_clique.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/communicator/reduce.h"

namespace mtplan::emulator {
namespace {

using runtime::ElementType;
using runtime::Reduction;

ElementType elementOf(ncclDataType_t type) {
  switch (type) {
  case ncclFloat64:
    return ElementType::f64;
  case ncclFloat16:
    return ElementType::f16;
  case ncclBfloat16:
    return ElementType::bf16;
  case ncclInt32:
    return ElementType::i32;
  default:
    return ElementType::f32;
  }
}

std::size_t bytesOf(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclUint8 ? 1
         : type == ncclInt64 || type == ncclUint64
             ? 8
             : static_cast<std::size_t>(runtime::bytesOf(elementOf(type)));
}

Reduction reductionOf(ncclRedOp_t reduction) {
  return reduction == ncclMax   ? Reduction::max
         : reduction == ncclAvg ? Reduction::avg
                                : Reduction::sum;
}

const char *at(const void *data, std::size_t bytes) {
  return static_cast<const char *>(data) + bytes;
}
char *at(void *data, std::size_t bytes) {
  return static_cast<char *>(data) + bytes;
}

/// Executes a collective for all ranks.
void carryOut(const std::map<int, Operation> &calls) {
  const Operation &any = calls.begin()->second;
  const std::size_t bytes = any.count * bytesOf(any.type);
  const auto reduce = [&](std::size_t from, const std::vector<int> &to) {
    std::vector<const void *> sources;
    sources.reserve(calls.size());
    for (const auto &[rank, operation] : calls)
      sources.push_back(at(operation.in, from));
    // An output may alias an input of the same call.
    std::vector<char> result(bytes);
    void *output = result.data();
    runtime::reduceInOrder(elementOf(any.type), reductionOf(any.reduction),
                           sources, {&output, 1}, 0,
                           static_cast<std::int64_t>(any.count));
    for (const int rank : to)
      std::memcpy(calls.at(rank).out, result.data(), bytes);
  };
  switch (any.kind) {
  case Kind::allReduce: {
    std::vector<int> all;
    all.reserve(calls.size());
    for (const auto &[rank, operation] : calls)
      all.push_back(rank);
    return reduce(0, all);
  }
  case Kind::reduce:
    return reduce(0, {any.peer});
  case Kind::reduceScatter:
    for (const auto &[rank, operation] : calls)
      reduce(rank * bytes, {rank});
    return;
  case Kind::allGather:
    for (const auto &[from, source] : calls)
      for (const auto &[to, target] : calls)
        if (at(target.out, from * bytes) != source.in)
          std::memcpy(at(target.out, from * bytes), source.in, bytes);
    return;
  case Kind::broadcast:
    for (const auto &[to, target] : calls)
      if (target.out != calls.at(any.peer).in)
        std::memcpy(target.out, calls.at(any.peer).in, bytes);
    return;
  default:
    return;
  }
}

} // namespace

std::vector<Touched> touchedBy(const Operation &operation, int rank,
                               int ranks) {
  const std::size_t bytes = operation.count * bytesOf(operation.type);
  const std::size_t all = bytes * static_cast<std::size_t>(ranks);
  const Touched in{operation.in,
                   operation.kind == Kind::reduceScatter ? all : bytes};
  const Touched out{operation.out,
                    operation.kind == Kind::allGather ? all : bytes, true};
  switch (operation.kind) {
  case Kind::send:
    return {in};
  case Kind::receive:
    return {out};
  case Kind::reduce:
    if (rank != operation.peer)
      return {in};
    return {in, out};
  default:
    return {in, out};
  }
}

Clique::Message &Clique::messageOf(int rank, const Numbered &one) {
  const int peer = one.operation.peer;
  return one.operation.kind == Kind::send ? messages[{rank, peer, one.number}]
                                          : messages[{peer, rank, one.number}];
}

void Clique::arrive(int rank, const Numbered &one) {
  if (one.operation.isTransfer()) {
    Message &message = messageOf(rank, one);
    (one.operation.kind == Kind::send ? message.sent : message.received) =
        one.operation;
  } else {
    collectives[one.number].calls[rank] = one.operation;
  }
}

bool Clique::isReady(int rank, const Numbered &one) {
  if (one.operation.isTransfer()) {
    const Message &message = messageOf(rank, one);
    if (message.done || aborted)
      return message.done;
    return message.sent && message.received &&
           message.sent->count == message.received->count &&
           message.sent->type == message.received->type;
  }
  const Collective &collective = collectives[one.number];
  if (collective.done || aborted)
    return collective.done;
  const auto &calls = collective.calls;
  return static_cast<int>(calls.size()) == size() &&
         std::ranges::all_of(calls, [&](const auto &of) {
           return of.second.matches(one.operation);
         });
}

void Clique::complete(int rank, const Numbered &one) {
  if (one.operation.isTransfer()) {
    Message &message = messageOf(rank, one);
    if (!std::exchange(message.done, true))
      std::memcpy(message.received->out, message.sent->in,
                  message.sent->count * bytesOf(message.sent->type));
    return;
  }
  Collective &collective = collectives[one.number];
  if (!std::exchange(collective.done, true))
    carryOut(collective.calls);
}

} // namespace mtplan::emulator

//===- nccl_mail.cpp - Messages between two ranks, by NCCL ----------------===//

#include "runtime/cuda/collectives/nccl/nccl_mail.h"

#include <algorithm>
#include <utility>

namespace mtplan::runtime::cuda {

namespace {

bool hasHappened(const Event &event) {
  const cudaError_t status = cudaEventQuery(event.get());
  if (status == cudaErrorNotReady)
    return false;
  MTPLAN_CUDA(status);
  return true;
}

} // namespace

OutgoingLine::OutgoingLine(const Watchdog &theWatchdog, NcclLink::Party party,
                           SharedContext theContext)
    : watchdog(theWatchdog), context(std::move(theContext)),
      its(theWatchdog, std::move(party), {}) {}

/// Null if there is none. The caller holds the mutex.
OutgoingLine::OwnedPiece OutgoingLine::take(std::size_t bytes) {
  while (!going.empty() && hasHappened(going.front()->sent)) {
    empty.push_back(std::move(going.front()));
    going.pop_front();
  }
  const auto found = std::ranges::find_if(
      empty, [&](const OwnedPiece &one) { return one->room >= bytes; });
  if (found == empty.end())
    return nullptr;
  OwnedPiece piece = std::move(*found);
  empty.erase(found);
  return piece;
}

OutgoingLine::OwnedPiece OutgoingLine::emptyPiece(std::size_t bytes) {
  for (bool marked = false;; awaitAMoment(watchdog)) {
    {
      const std::lock_guard lock(mutex);
      if (OwnedPiece piece = take(bytes))
        return piece;
      if (pieces < kPieces || (marked && hasHappened(here))) {
        ++pieces;
        return std::make_unique<Piece>(bytes);
      }
    }
    if (!marked)
      MTPLAN_CUDA(cudaEventRecord(here.get(), context->stream().get()));
    marked = true;
  }
}

void OutgoingLine::send(const std::string &label, const void *data,
                        std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  OwnedPiece piece = emptyPiece(size);
  piece->label = label;
  piece->bytes = bytes;
  cudaStream_t from = context->stream().get();
  if (size > 0)
    MTPLAN_CUDA(cudaMemcpyAsync(piece->memory.get(), data, size,
                                cudaMemcpyDeviceToDevice, from));
  MTPLAN_CUDA(cudaEventRecord(piece->filled.get(), from));
  const std::lock_guard lock(mutex);
  waiting.push_back(std::move(piece));
  goOn();
}

/// Puts what waits on the stream, as far as the line is ready for it. The
/// caller holds the mutex.
void OutgoingLine::goOn() {
  while (!waiting.empty() && its.isReady()) {
    Piece &first = *waiting.front();
    if (!isGoing) {
      isGoing = true;
      MTPLAN_CUDA(cudaStreamWaitEvent(stream.get(), first.filled.get(), 0));
      if (first.bytes > 0)
        its.start([&](ncclComm_t comm) {
          return ncclSend(first.memory.get(),
                          static_cast<std::size_t>(first.bytes), ncclUint8, 1,
                          comm, stream.get());
        });
      continue;
    }
    isGoing = false;
    MTPLAN_CUDA(cudaEventRecord(first.sent.get(), stream.get()));
    going.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
}

bool OutgoingLine::isIdle() {
  const std::lock_guard lock(mutex);
  return waiting.empty() &&
         std::ranges::all_of(going, [](const OwnedPiece &one) {
           return hasHappened(one->sent);
         });
}

std::string OutgoingLine::wordsOfOldest() {
  const std::lock_guard lock(mutex);
  for (const auto *all : {&going, &waiting})
    for (const OwnedPiece &one : *all)
      if (all == &waiting || !hasHappened(one->sent))
        return '"' + one->label + "\" of " + std::to_string(one->bytes) +
               " bytes";
  return "nothing";
}

void OutgoingLine::look(Clock::time_point now) {
  its.look(now);
  if (watchdog.hasFailed())
    return;
  const std::lock_guard lock(mutex);
  goOn();
}

} // namespace mtplan::runtime::cuda

//===- nccl_mail.cpp - Messages between two ranks over NCCL ---------------===//

#include "runtime/cuda/collectives/nccl/nccl_mail.h"

#include <algorithm>
#include <utility>

namespace mtplan::runtime::cuda {

OutgoingLine::OutgoingLine(const Watchdog &theWatchdog,
                           NcclLink::Members members, SharedContext theContext)
    : watchdog(theWatchdog), context(std::move(theContext)),
      its(theWatchdog, std::move(members), {}) {}

/// Moves to `empty` the pieces whose messages have been received. The caller
/// must hold the mutex.
void OutgoingLine::collect() {
  while (!going.empty() && going.front()->sent.hasHappened()) {
    empty.push_back(std::move(going.front()));
    going.pop_front();
  }
}

/// Returns an empty piece of at least `bytes` bytes, or null. The caller must
/// hold the mutex.
OutgoingLine::OwnedPiece OutgoingLine::take(std::size_t bytes) {
  collect();
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
      if (pieces < kPieces || (marked && here.hasHappened())) {
        ++pieces;
        return std::make_unique<Piece>(bytes);
      }
    }
    if (!marked)
      MTPLAN_CUDA(cudaEventRecord(here.get(), context->stream().get()));
    marked = true;
  }
}

void OutgoingLine::beginRecording() {
  const std::lock_guard lock(mutex);
  collect();
  std::size_t room = 0;
  for (const OwnedPiece &one : empty)
    room = std::max(room, one->room);
  for (OwnedPiece &one : empty)
    if (one->room < room)
      outgrown.push_back(std::exchange(one, std::make_unique<Piece>(room)));
  inRecording = 0;
}

void OutgoingLine::record(const void *data, std::size_t bytes) {
  cudaStream_t from = context->stream().get();
  Piece &piece = *empty.at(inRecording % empty.size());
  if (inRecording++ >= empty.size())
    MTPLAN_CUDA(cudaStreamWaitEvent(from, piece.sent.get(), 0));
  if (bytes > 0)
    MTPLAN_CUDA(cudaMemcpyAsync(piece.memory.get(), data, bytes,
                                cudaMemcpyDeviceToDevice, from));
  MTPLAN_CUDA(cudaEventRecord(piece.filled.get(), from));
  MTPLAN_CUDA(cudaStreamWaitEvent(stream.get(), piece.filled.get(), 0));
  if (bytes > 0)
    its.call([&](ncclComm_t comm) {
      return ncclSend(piece.memory.get(), bytes, ncclUint8, 1, comm,
                      stream.get());
    });
  MTPLAN_CUDA(cudaEventRecord(piece.sent.get(), stream.get()));
}

bool OutgoingLine::endRecording(cudaStream_t end) {
  const std::lock_guard lock(mutex);
  if (inRecording == 0)
    return false;
  const Piece &last = *empty[(inRecording - 1) % empty.size()];
  MTPLAN_CUDA(cudaStreamWaitEvent(end, last.sent.get(), 0));
  return true;
}

void OutgoingLine::waitForSends(cudaStream_t next) {
  for (;; awaitAMoment(watchdog)) {
    const std::lock_guard lock(mutex);
    sendWaiting();
    if (!waiting.empty())
      continue;
    if (!going.empty())
      MTPLAN_CUDA(cudaStreamWaitEvent(next, going.back()->sent.get(), 0));
    return;
  }
}

void OutgoingLine::send(const std::string &label, const void *data,
                        std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (captureOf(context->stream().get()))
    return record(data, size);
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
  sendWaiting();
}

/// Queues waiting messages while the communicator is ready. The caller must
/// hold the mutex.
void OutgoingLine::sendWaiting() {
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
           return one->sent.hasHappened();
         });
}

std::string OutgoingLine::wordsOfOldest() {
  const std::lock_guard lock(mutex);
  for (const auto *all : {&going, &waiting})
    for (const OwnedPiece &one : *all)
      if (all == &waiting || !one->sent.hasHappened())
        return '"' + one->label + "\" of " + std::to_string(one->bytes) +
               " bytes";
  return "nothing";
}

void OutgoingLine::look(Clock::time_point now) {
  its.look(now);
  if (watchdog.hasFailed())
    return;
  const std::lock_guard lock(mutex);
  sendWaiting();
}

} // namespace mtplan::runtime::cuda

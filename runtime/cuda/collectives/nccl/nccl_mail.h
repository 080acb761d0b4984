//===- nccl_mail.h - Messages between two ranks, by NCCL --------*- C++ -*-===//
//
// The executor sends and goes on; a send of NCCL holds its stream until the
// receiver has come, and all calls of a communicator go in their order. So
// that nothing waits that should not:
//
//   * A message is copied, in the order of the caller's stream, into memory of
//     the line, and sent from there on a stream of the line's own. A plan joins
//     all its streams after each segment, so that one that was held would hold
//     them all, and two ranks that send to each other first would wait for
//     ever.
//   * A line is one direction of one channel between two ranks, with a
//     communicator of its own: what is sent on another, or back, goes past it.
//     Within a line messages are in order anyway.
//   * A line is made at its first message: the sender goes on at once, the
//     message waits with others in the line until both ends are there, and the
//     watchdog sends it then.
//
// Of a line's memory there are pieces for kPieces messages, of one of which the
// device disposes again when it has been received. Where all are in use the
// host waits, not to run so far ahead that a step's messages lie side by side,
// until one is free or the device itself has come to the send: then the
// schedule needs more, and there will be one more. So the first steps allocate,
// and no schedule that sends as it likes gets stuck.
//
// In a recording messages go through those pieces in turn, each once the one
// before it in its piece has been received. That cannot get stuck, either: when
// the same messages were sent before there were no more pieces, and all waits
// of the recording were over in time. CUDA promises no more than the order that
// it is told, though: how many branches of a graph go side by side is the
// device's.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_MAIL_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_MAIL_H

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/collectives/nccl/nccl_link.h"

namespace mtplan::runtime::cuda {

inline constexpr std::size_t kPieces = 8;

/// The sender's end of a line.
class OutgoingLine final : public Ward {
public:
  OutgoingLine(const Watchdog &watchdog, NcclLink::Party party,
               SharedContext context);

  /// Recorded if the caller's stream is.
  void send(const std::string &label, const void *data, std::int64_t bytes);

  /// While the line is idle: pieces become as large as the largest.
  void beginRecording();
  /// The stream, which is recorded, follows what was sent in the recording.
  /// False: nothing was.
  bool endRecording(cudaStream_t end);
  /// The stream follows what was sent so far, but for recordings. Waits until
  /// that is on the line's stream.
  void letFollow(cudaStream_t next);

  /// Whether all has been received.
  bool isIdle();
  NcclLink &link() { return its; }
  /// Of the oldest message that has not been received.
  std::string wordsOfOldest();

  void look(Clock::time_point now) override;
  void abort() noexcept override { its.abort(); }

private:
  struct Piece {
    explicit Piece(std::size_t size) : memory(size), room(size) {}
    DeviceMemory memory;
    std::size_t room;
    std::string label;
    std::int64_t bytes = 0;
    Event filled, sent;
  };
  using OwnedPiece = std::unique_ptr<Piece>;

  void collect();
  void record(const void *data, std::size_t bytes);
  OwnedPiece emptyPiece(std::size_t bytes);
  OwnedPiece take(std::size_t bytes);
  void goOn();

  const Watchdog &watchdog;
  const SharedContext context;
  NcclLink its;
  const Stream stream;
  Event here; ///< the caller's stream has come to a send that lacks a piece
  std::mutex mutex; ///< of what follows
  std::size_t pieces = 0;
  /// Waiting for the line; the first may be on its way to the stream.
  std::deque<OwnedPiece> waiting;
  bool isGoing = false;
  std::deque<OwnedPiece> going;     ///< on the stream
  std::vector<OwnedPiece> empty;    ///< of the sender's thread alone, as below
  std::size_t inRecording = 0;      ///< messages
  std::vector<OwnedPiece> outgrown; ///< recordings may use them
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_MAIL_H

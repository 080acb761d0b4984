//===- nccl_mail.h - Messages between two ranks over NCCL -------*- C++ -*-===//
//
// The executor sends and goes on. A send of NCCL blocks its stream until the
// receiver comes, and the calls of a communicator run in order. Three rules
// keep other work from waiting:
//
//   * A message is copied, in the order of the caller's stream, to memory of
//   the
//     line, and sent from there on a stream of the line. A plan joins all its
//     streams after each segment, so a blocked stream would block all of them,
//     and two ranks that send to each other first would deadlock.
//   * A line is one direction of one channel between two ranks, with its own
//     communicator, so that messages of other lines overtake it. Messages
//     within a line are in order.
//   * A line is made at its first message. The sender goes on at once, messages
//     wait in the line until both ends are connected, and the watchdog then
//     sends them.
//
// The memory of a line has pieces for kPieces messages. A piece is free again
// when its message has been received. If all are in use, the host waits, so
// that it does not run ahead and keep all messages of a step in memory. It
// waits until a piece is free, or until the device itself has come to the send:
// then the schedule needs more pieces, and one is added. The first steps
// therefore allocate, and no schedule deadlocks.
//
// In a recording messages use the pieces in turn, each once the previous
// message of its piece has been received. That does not deadlock either: when
// the same messages were sent before, no more pieces were needed, and all waits
// of the recording ended in time. CUDA only promises the order that it is told,
// though: the device decides how many branches of a graph run in parallel.
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

  /// Sends a message, or records it if the caller's stream is captured.
  void send(const std::string &label, const void *data, std::int64_t bytes);

  /// Makes all pieces as large as the largest; the line must be idle.
  void beginRecording();
  /// Makes the captured stream wait for all recorded messages. Returns false if
  /// there are none.
  bool endRecording(cudaStream_t end);
  /// Makes a stream wait for all messages sent so far, except recorded ones.
  /// Blocks until these are on the line's stream.
  void letFollow(cudaStream_t next);

  /// Returns whether all messages have been received.
  bool isIdle();
  NcclLink &link() { return its; }
  /// Describes the oldest message that has not been received.
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
  std::mutex mutex; ///< guards the members below
  std::size_t pieces = 0;
  /// Messages that wait for the line; the first may be on its way to the
  /// stream.
  std::deque<OwnedPiece> waiting;
  bool isGoing = false;
  std::deque<OwnedPiece> going;     ///< on the stream
  std::vector<OwnedPiece> empty;    ///< only the sender's thread uses it, and
                                    ///< the members below
  std::size_t inRecording = 0;      ///< messages
  std::vector<OwnedPiece> outgrown; ///< older recordings may use them
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_MAIL_H

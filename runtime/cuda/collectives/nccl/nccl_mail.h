//===- nccl_mail.h - Messages between two ranks over NCCL -------*- C++ -*-===//
//
// An NCCL send blocks its stream until the matching receive, and the calls of a
// communicator run in order. Three rules keep a send from blocking later work:
//
//   * A line is one direction of one channel between two ranks. Each line has
//     its own communicator, so that messages of different lines can overtake
//     each other.
//   * A message is copied on the caller's stream to memory of its line, and
//     sent from there on a stream of the line. A plan joins all its streams
//     after each segment, so two ranks that both send before they receive would
//     deadlock if a send blocked a stream of the plan.
//   * A line is created at its first message. The sender does not wait for the
//     creation: messages wait in the line until both ends are connected. Then
//     the watchdog or the next call of send() sends these messages.
//
// A line allocates up to kPieces pieces of memory, one per message. A piece is
// empty again when its message has been received. If all pieces are in use, the
// host waits, so that a line does not buffer all messages of a step. The wait
// ends when a piece is empty. The wait also ends when the device reaches the
// send: then the schedule needs one more piece, which is added to avoid a
// deadlock.
//
// In a recording, messages use the pieces in turn: a message waits until the
// previous message of its piece has been received. These waits do not deadlock,
// because the same waits ended in the steps before the recording. However, CUDA
// guarantees only the recorded order: the device decides how many branches of a
// graph run concurrently.
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

/// Limits the pieces that a line allocates before a send waits for an empty
/// piece.
inline constexpr std::size_t kPieces = 8;

class OutgoingLine final : public Ward {
public:
  OutgoingLine(const Watchdog &watchdog, NcclLink::Members members,
               SharedContext context);

  /// Queues a message, or captures it if the caller's stream is being captured.
  void send(const std::string &label, const void *data, std::int64_t bytes);

  /// Makes all pieces as large as the largest piece. The line must be idle.
  void beginRecording();
  /// Makes the captured stream wait for all captured messages. Returns false if
  /// no messages have been captured.
  bool endRecording(cudaStream_t end);
  /// Makes a stream wait for all messages sent so far, except captured
  /// messages. Blocks the host until all these messages are queued on the
  /// line's stream.
  void waitForSends(cudaStream_t next);

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
  void sendWaiting();

  const Watchdog &watchdog;
  const SharedContext context;
  NcclLink its;
  const Stream stream;
  Event here;       ///< recorded where a send waits for a piece
  std::mutex mutex; ///< guards the members down to `going`
  std::size_t pieces = 0;
  /// Holds the messages that wait for the communicator. If `isGoing`, the send
  /// of the first message has been started.
  std::deque<OwnedPiece> waiting;
  bool isGoing = false;
  std::deque<OwnedPiece> going;     ///< queued on the stream
  std::vector<OwnedPiece> empty;    ///< only the sender's thread uses this and
                                    ///< the members below
  std::size_t inRecording = 0;      ///< captured messages so far
  std::vector<OwnedPiece> outgrown; ///< pieces that older recordings use
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_NCCL_MAIL_H

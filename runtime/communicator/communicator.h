//===- communicator.h - Collectives and messages between ranks --*- C++ -*-===//
//
// The collectives have the semantics of NCCL's collectives. `place` is a rank's
// index in its group. A tensor has `outer` rows of pieces; a piece has `inner`
// elements. In a tensor that has been gathered or will be scattered, each row
// consists of one piece of every rank, in the order of the group. A dimension
// in the middle of a tensor is therefore gathered without a transposition.
//
// Except over NCCL, reductions run in the order of the group and round once at
// the end. They run in double precision for f64, and in single precision for
// narrower floating-point types. All transports but NCCL therefore return the
// same bits. `label` names a call in messages. If the calls of a group differ
// in label, kind, sizes or type, all ranks of the group fail, and the message
// contains both calls.
//
// A rank that waits longer than the world's timeout (`patience`) throws
// CommunicationError with the number of the missing rank, the label and the
// group.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_COMMUNICATOR_H
#define MTPLAN_RUNTIME_COMMUNICATOR_COMMUNICATOR_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

struct CommunicationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Pieces {
  ElementType type = ElementType::f32;
  std::int64_t outer = 1; ///< rows
  std::int64_t inner = 1; ///< elements per piece

  bool operator==(const Pieces &) const = default;
};

/// Gives one rank access to a process group. All ranks of a group must make the
/// same calls in the same order. Buffers must not overlap, except that an
/// allReduce may be in place. Only one thread at a time may use a group. A
/// group is unusable after a call has thrown.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int size() const = 0;
  virtual int place() const = 0;

  /// Registers memory that calls use at the same offsets from `data` on all
  /// ranks. The memory must stay valid until the world has ended. Call this
  /// before the first collective.
  virtual void registerMemory(void * /*data*/, std::int64_t /*bytes*/) {}

  /// Reduces outer * inner elements; every rank receives the result.
  virtual void allReduce(const std::string &label, const void *in, void *out,
                         Pieces pieces, Reduction reduction) = 0;
  /// Reduces to the rank at index `root` of the group; only this rank writes
  /// `out`.
  virtual void reduce(const std::string &label, const void *in, void *out,
                      Pieces pieces, Reduction reduction, int root) = 0;
  /// Gathers the pieces of all ranks, from [outer][inner] into
  /// [outer][size][inner].
  virtual void allGather(const std::string &label, const void *in, void *out,
                         Pieces pieces) = 0;
  /// Reduces [outer][size][inner], and gives each rank its piece of the result,
  /// [outer][inner].
  virtual void reduceScatter(const std::string &label, const void *in,
                             void *out, Pieces pieces, Reduction reduction) = 0;
  /// Sends piece q of the rank at index p of the group to the rank at index q,
  /// which stores it as piece p. Both buffers are [outer][size][inner].
  virtual void allToAll(const std::string &label, const void *in, void *out,
                        Pieces pieces) = 0;
  /// Sends the data of the rank at index `root` of the group to all ranks.
  virtual void broadcast(const std::string &label, void *data, Pieces pieces,
                         int root) = 0;

  /// Returns whether one grouped call is faster than separate calls.
  virtual bool joins() const { return false; }
  /// Runs the collectives that `calls` makes on this group as one grouped call.
  /// No collective may write a buffer that another uses. If joins() is true,
  /// the collectives may start only after `calls` has returned, and none starts
  /// if `calls` throws.
  virtual void together(const std::function<void()> &calls) { calls(); }
};

/// Holds the collectives and messages of a recording (runtime/backend/queue.h).
class RecordedCalls {
public:
  virtual ~RecordedCalls() = default;
  /// Call this before each replay of the recording.
  /// \throws CommunicationError like the calls themselves
  virtual void repeat() = 0;
  /// Call this after the replay has been queued.
  virtual void repeated() = 0;
};

/// Gives one rank access to all ranks of a run.
class World {
public:
  virtual ~World() = default;
  virtual int size() const = 0;
  virtual int rank() const = 0;

  /// Creates the group of `ranks`, in this order. The group must include this
  /// rank. All ranks of the group must call this with the same `name`. Two
  /// ranks must create the groups that contain both of them in the same order.
  virtual std::unique_ptr<Communicator>
  group(const std::string &name, const std::vector<int> &ranks) = 0;
  std::unique_ptr<Communicator> allRanks(const std::string &name);

  /// Sends a buffered message, and returns once `data` may be changed, possibly
  /// before the matching receive. Messages of one channel between two ranks
  /// arrive in order. Channels count from 0.
  virtual void send(const std::string &label, const void *data,
                    std::int64_t bytes, int to, int channel) = 0;
  /// Blocks until a message of `bytes` bytes from this channel has arrived.
  virtual void receive(const std::string &label, void *data, std::int64_t bytes,
                       int from, int channel) = 0;

  virtual void barrier(const std::string &label) = 0;

  /// Sets the step of the following calls, counted from 1. Error messages name
  /// the step, because a device may hang in a call long after the host has
  /// queued the call.
  virtual void beginStep(std::int64_t /*step*/) {}

  virtual std::chrono::milliseconds patience() const = 0;
  /// Throws CommunicationError if another rank has failed. The function does
  /// not block, and any thread may call it.
  virtual void check() = 0;

  /// Returns whether a queue may record the calls of this world and of its
  /// groups (runtime/backend/queue.h) once the same calls have been made.
  virtual bool isQueued() const { return true; }
  /// Call this before a recording. All ranks of a group must record the same
  /// calls.
  virtual void beginRecording() {}
  /// Call this at the end of a recording. Returns null if a replay needs no
  /// further calls. The result must be destroyed before the world.
  virtual std::unique_ptr<RecordedCalls> endRecording() { return nullptr; }

  /// Sends all other ranks the reason for which this rank fails. The other
  /// ranks throw CommunicationError with this reason instead of waiting for
  /// this rank.
  virtual void fail(const std::string &why) noexcept = 0;
};

struct WorldOptions {
  std::chrono::milliseconds patience{8000}; ///< the timeout
  /// Ranks that connect over sockets wait this long, or `patience` if that is
  /// longer, until all ranks have started.
  std::chrono::milliseconds gathering{60000};
  /// Ranks may run this long after another rank has failed. Then their
  /// processes are ended.
  std::chrono::milliseconds ending{500};
  /// Says whether a rank survives SIGTERM, because the run polls
  /// terminationAsked() and ends by itself. SIGTERM still ends a rank that
  /// waits for a process known to have died (Wire::hasDied).
  bool outlivesTermination = false;
};

/// Makes SIGTERM end the waits of this rank, so that the rank reports for which
/// ranks it waits: launchers send SIGTERM to all ranks when one has died, and
/// SIGKILL soon after. A rank that does not wait also ends soon. An existing
/// signal handler is not replaced.
void listenForTermination();
/// Returns whether SIGTERM has arrived since listenForTermination().
bool isTerminated();

/// Makes SIGTERM, SIGINT and SIGUSR1 set terminationAsked() instead of ending
/// the process. Existing signal handlers are not replaced. A SIGTERM or SIGINT
/// that arrives a second or more after the first ends the process.
void handleSignals();
/// Returns whether one of the signals of handleSignals() has arrived.
bool terminationAsked();

/// Runs `body` on `ranks` threads of this process, each with its own World.
/// Rethrows the error of the lowest rank that failed by itself, not because of
/// another rank's failure. A message that was never received is an error.
void runOnThreads(int ranks, const WorldOptions &options,
                  const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_COMMUNICATOR_H

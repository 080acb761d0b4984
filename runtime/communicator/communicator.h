//===- communicator.h - Collectives and messages between ranks --*- C++ -*-===//
//
// The collectives have the meaning of NCCL's. A tensor is seen as `outer` rows
// of pieces; a piece has `inner` elements. In a gathered tensor, or one that is
// not yet scattered, row o holds the pieces of all places one after another. A
// dimension in the middle of a tensor is therefore gathered without a
// transposition.
//
// Sums and maxima are taken in the order of places, f64 in double precision and
// all narrower types in single precision, and are rounded once. Every transport
// therefore gives the same bits. `label` names a call in messages. Ranks whose
// calls differ in label, kind, sizes or type all fail, with both calls in the
// message.
//
// A rank that waits longer than the world's patience throws CommunicationError
// with the number of the missing rank, the label and the group.
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

/// Describes the data of a collective.
struct Pieces {
  ElementType type = ElementType::f32;
  std::int64_t outer = 1; ///< rows
  std::int64_t inner = 1; ///< elements per piece

  bool operator==(const Pieces &) const = default;
};

/// One rank's end of a process group. All ranks of a group make the same calls
/// in the same order. Buffers do not overlap, except that those of allReduce
/// may be the same. A rank may use several groups from several threads, but
/// each group from one thread at a time. A group cannot be used after a call
/// has thrown.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int size() const = 0;
  virtual int place() const = 0;

  /// Announces memory that calls will read and write, on all ranks at the same
  /// offsets from `data`. It must stay valid until the world has ended. Call
  /// this before the first collective.
  virtual void registerMemory(void * /*data*/, std::int64_t /*bytes*/) {}

  /// Reduces outer * inner elements; every rank gets the result.
  virtual void allReduce(const std::string &label, const void *in, void *out,
                         Pieces pieces, Reduction reduction) = 0;
  /// Reduces to place `root` only; `out` is untouched on the others.
  virtual void reduce(const std::string &label, const void *in, void *out,
                      Pieces pieces, Reduction reduction, int root) = 0;
  /// Gathers: `in` is [outer][inner], `out` is [outer][size][inner].
  virtual void allGather(const std::string &label, const void *in, void *out,
                         Pieces pieces) = 0;
  /// Reduces and scatters: `in` is [outer][size][inner], `out` is
  /// [outer][inner].
  virtual void reduceScatter(const std::string &label, const void *in,
                             void *out, Pieces pieces, Reduction reduction) = 0;
  /// Exchanges: piece q of place p becomes piece p of place q. Both buffers are
  /// [outer][size][inner].
  virtual void allToAll(const std::string &label, const void *in, void *out,
                        Pieces pieces) = 0;
  /// Sends the data of place `root` to all places.
  virtual void broadcast(const std::string &label, void *data, Pieces pieces,
                         int root) = 0;

  /// Returns whether grouped calls take less time than single ones.
  virtual bool joins() const { return false; }
  /// Makes the calls that `calls` makes on this group as one grouped call. No
  /// call may write what another reads or writes. If the group joins calls,
  /// they may be made after `calls` has returned, and none is made if it
  /// throws.
  virtual void together(const std::function<void()> &calls) { calls(); }
};

/// Holds the calls that were made while a queue recorded
/// (runtime/backend/queue.h).
class RecordedCalls {
public:
  virtual ~RecordedCalls() = default;
  /// Runs before the queue replays the calls. Throws as the calls themselves
  /// would.
  virtual void repeat() = 0;
  /// Runs after the queue has been told to replay.
  virtual void repeated() = 0;
};

/// One rank's access to all ranks of a run.
class World {
public:
  virtual ~World() = default;
  virtual int size() const = 0;
  virtual int rank() const = 0;

  /// Returns the group of `ranks`, in the order of their places; this rank is
  /// among them. Every rank of the group asks for it with the same `name`, and
  /// groups that share ranks are asked for in the same order everywhere.
  virtual std::unique_ptr<Communicator>
  group(const std::string &name, const std::vector<int> &ranks) = 0;
  /// Returns the group of all ranks.
  std::unique_ptr<Communicator> allRanks(const std::string &name);

  /// Sends a buffered message: returns once `data` may be changed, whether or
  /// not the receiver has asked for it. Messages of one channel between two
  /// ranks arrive in order. Channels count from 0.
  virtual void send(const std::string &label, const void *data,
                    std::int64_t bytes, int to, int channel) = 0;
  virtual void receive(const std::string &label, void *data, std::int64_t bytes,
                       int from, int channel) = 0;

  virtual void barrier(const std::string &label) = 0;

  /// Declares that the following calls belong to this step, counted from 1.
  /// Messages name the step where a device may hang in a call long after it was
  /// made.
  virtual void beginStep(std::int64_t /*step*/) {}

  /// Returns how long a rank may keep others waiting.
  virtual std::chrono::milliseconds patience() const = 0;
  /// Throws if another rank has failed, as any call would. Does not wait, and
  /// may be called from any thread.
  virtual void check() = 0;

  /// Returns whether calls of this world and of its groups are queued, with
  /// equal cost whenever they are made. Such calls may be recorded
  /// (runtime/backend/queue.h) once the same calls have been made before.
  virtual bool isQueued() const { return true; }
  /// Announces that a queue is about to record the same calls on all ranks of a
  /// group.
  virtual void beginRecording() {}
  /// Ends a recording, from within it. The result must be destroyed before the
  /// world. Null means that replaying needs nothing else.
  virtual std::unique_ptr<RecordedCalls> endRecording() { return nullptr; }

  /// Tells all other ranks why this rank fails: they throw CommunicationError
  /// with this reason instead of waiting for it.
  virtual void fail(const std::string &why) noexcept = 0;
};

struct WorldOptions {
  /// How long a rank may keep others waiting.
  std::chrono::milliseconds patience{8000};
  /// How long ranks that connect over sockets wait for all to be started;
  /// patience counts if it is longer.
  std::chrono::milliseconds gathering{60000};
  /// How long ranks may go on after one has failed, before their processes are
  /// ended.
  std::chrono::milliseconds ending{500};
  /// Lets a rank survive SIGTERM: the run calls terminationAsked() and ends by
  /// itself. A rank that waits for a dead process of this machine ends anyway.
  bool outlivesTermination = false;
};

/// Makes SIGTERM end this rank's patience, so that it names the ranks it waited
/// for: launchers send SIGTERM to all ranks when one has died, and SIGKILL soon
/// after. A rank that waits for none ends soon after, too. A handler that the
/// process already has stays in place.
void listenForTermination();
/// Returns whether SIGTERM has come since listenForTermination().
bool isTerminated();

/// Stores SIGTERM, SIGINT and SIGUSR1 for terminationAsked() from now on;
/// handlers that the process already has stay. A SIGTERM or SIGINT that comes a
/// second or more after the first ends the process.
void keepTermination();
/// Returns whether one of these signals has come.
bool terminationAsked();

/// Runs `body` on `ranks` threads of this process, each with its own World.
/// Rethrows the first error, by rank, that does not repeat another rank's
/// failure. A message that no rank has received is an error.
void runOnThreads(int ranks, const WorldOptions &options,
                  const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_COMMUNICATOR_H

//===- communicator.h - How ranks talk to each other ------------*- C++ -*-===//
//
// The collectives of NCCL with NCCL's meaning, on tensors seen as `outer` rows
// of pieces: a piece is `inner` elements, and in what is gathered, or not yet
// scattered, row o has the pieces of all places one after another. So a
// dimension in the middle of a tensor is gathered without a transposition.
//
// Sums and maxima are taken in the order of places, in double precision of f64,
// in single precision of everything narrower, and rounded once: every transport
// gives the same bits. `label` names a call in messages; ranks whose calls do
// not match (label, kind, sizes, type) fail, all of them, with both sides'
// words.
//
// Whoever waits longer than the world's patience for a rank that does not come
// throws CommunicationError with that rank's number, the label and the group.
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

/// What every call of a collective says of its data.
struct Pieces {
  ElementType type = ElementType::f32;
  std::int64_t outer = 1; ///< rows
  std::int64_t inner = 1; ///< elements of a piece
};

/// One rank's end of a group. All ranks of a group make the same calls in the
/// same order. Buffers do not overlap, but for allReduce, where they may be the
/// same. A rank may use several groups from several threads, each from one at a
/// time. Once a call has thrown, the group is of no more use.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int size() const = 0;
  virtual int place() const = 0;

  /// Calls will read and write here, of all ranks at the same distances from
  /// `data`, which stays until the world has ended. Before the first call.
  virtual void registerMemory(void * /*data*/, std::int64_t /*bytes*/) {}

  /// outer * inner elements in and out.
  virtual void allReduce(const std::string &label, const void *in, void *out,
                         Pieces pieces, Reduction reduction) = 0;
  /// The same, to place `root` alone; the others' `out` is not touched.
  virtual void reduce(const std::string &label, const void *in, void *out,
                      Pieces pieces, Reduction reduction, int root) = 0;
  /// [outer][inner] in, [outer][size][inner] out.
  virtual void allGather(const std::string &label, const void *in, void *out,
                         Pieces pieces) = 0;
  /// [outer][size][inner] in, [outer][inner] out.
  virtual void reduceScatter(const std::string &label, const void *in,
                             void *out, Pieces pieces, Reduction reduction) = 0;
  /// Place p's piece q becomes place q's piece p: [outer][size][inner] in and
  /// out.
  virtual void allToAll(const std::string &label, const void *in, void *out,
                        Pieces pieces) = 0;
  /// From place `root` to all.
  virtual void broadcast(const std::string &label, void *data, Pieces pieces,
                         int root) = 0;

  /// Whether calls that are made together take less time than one by one.
  virtual bool joins() const { return false; }
  /// Makes what `calls` calls of this group. None of them writes what another
  /// reads or writes; where the group joins they may be made when `calls` has
  /// returned, and none is if it throws.
  virtual void together(const std::function<void()> &calls) { calls(); }
};

/// Calls that were made while a queue recorded (runtime/backend/queue.h).
class RecordedCalls {
public:
  virtual ~RecordedCalls() = default;
  /// Before the queue replays them. Throws as the calls themselves would.
  virtual void repeat() = 0;
  /// When the queue has been told to.
  virtual void repeated() = 0;
};

/// All ranks of a run, as one of them sees them.
class World {
public:
  virtual ~World() = default;
  virtual int size() const = 0;
  virtual int rank() const = 0;

  /// Ranks in the order of their places; this one is among them. Every rank of
  /// the group asks for it, with the same `name`, and groups that share ranks
  /// are asked for in the same order everywhere.
  virtual std::unique_ptr<Communicator>
  group(const std::string &name, const std::vector<int> &ranks) = 0;
  /// The group of all ranks.
  std::unique_ptr<Communicator> everyone(const std::string &name);

  /// Taken as buffered: returns once `data` may be changed, whether or not the
  /// other has asked for it. Messages of one channel between two ranks arrive
  /// in order. Channels are from 0.
  virtual void send(const std::string &label, const void *data,
                    std::int64_t bytes, int to, int channel) = 0;
  virtual void receive(const std::string &label, void *data, std::int64_t bytes,
                       int from, int channel) = 0;

  virtual void barrier(const std::string &label) = 0;

  /// Calls that follow are made in this step, from 1. Where a device may hang
  /// in one long after it was made, messages name the step.
  virtual void beginStep(std::int64_t /*step*/) {}

  /// How long a rank may keep others waiting.
  virtual std::chrono::milliseconds patience() const = 0;
  /// Throws if another rank has failed, as any call would; waits for nobody.
  /// From any thread.
  virtual void check() = 0;

  /// Whether calls of it and of its groups are queued, all the same whenever
  /// they are made, so that they may be recorded (runtime/backend/queue.h) once
  /// the same calls have been made before.
  virtual bool isQueued() const { return true; }
  /// A queue is about to record, on all ranks of a group the same calls.
  virtual void beginRecording() {}
  /// At the end of what is recorded, within it. Ends before the world. Null: to
  /// replay it is all that there is to do.
  virtual std::unique_ptr<RecordedCalls> endRecording() { return nullptr; }

  /// Tells all others why this rank gives up: they throw CommunicationError
  /// with these words instead of waiting for it.
  virtual void fail(const std::string &why) noexcept = 0;
};

struct WorldOptions {
  /// How long a rank may keep others waiting.
  std::chrono::milliseconds patience{8000};
  /// How long ranks that meet over sockets wait for all to be started; patience
  /// if that is longer.
  std::chrono::milliseconds gathering{60000};
  /// How long ranks may go on after one has failed. Then they are ended with
  /// their processes.
  std::chrono::milliseconds ending{500};
  /// Who is told to end by SIGTERM goes on: the run sees to its end itself, and
  /// asks for it with terminationAsked. But not if it waits for a process of
  /// this machine that has died.
  bool outlivesTermination = false;
};

/// From now on SIGTERM, SIGINT and SIGUSR1 are kept for terminationAsked; where
/// the process has handlers of its own, they stay. A SIGTERM or SIGINT a
/// second after the first, or later, ends the process.
void keepTermination();
/// Whether one of them has come.
bool terminationAsked();

/// Runs `body` on `ranks` threads of this process, each with its own World.
/// Rethrows the first error by rank that is not the echo of another's. A
/// message that nobody has received is an error.
void runOnThreads(int ranks, const WorldOptions &options,
                  const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_COMMUNICATOR_H

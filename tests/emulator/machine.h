//===- machine.h - Streams, events and graphs of devices --------*- C++ -*-===//
//
// Declares the state that streams.cpp and graphs.cpp share, which
// Machine::mutex guards.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_MACHINE_H
#define MTPLAN_TESTS_EMULATOR_MACHINE_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/emulator/in_flight.h"
#include "tests/emulator/streams.h"

namespace mtplan::emulator {

using Make = std::function<Polled()>;

/// Describes a node of a graph. The node waits for the nodes `after`, which
/// precede it in Captured::nodes.
struct Node {
  Make make;
  std::vector<std::size_t> after;
  bool mayWait = false; ///< the work may wait for other devices
};

/// Holds a capture of the stream `origin` and of the streams that joined it.
struct Captured {
  cudaStream_t origin;
  std::vector<Node> nodes;
  std::vector<cudaStream_t> streams;
  bool isOpen = true, isSpoilt = false;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  unsigned long long number = 0;
};

/// Counts the open captures of this thread that are not in relaxed mode.
extern thread_local int captures;
/// Counts the open captures of this thread in any mode.
extern thread_local int openCaptures;
/// Returns whether this thread may not call functions that synchronise: it has
/// an open capture that is not in relaxed mode, or any thread has an open
/// capture in global mode.
bool isForbidden();

/// Holds the emulated devices of the process.
struct Machine {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<cudaStream_t> streams; ///< in order of creation
  StreamOrder order = StreamOrder::first;
  std::atomic<int> devices{1}; ///< number of devices, set by setDevices()
  /// `threads` threads queue work, and `waiting` of them wait now.
  int threads = 1, waiting = 0;
  std::uint64_t waitRounds = 0; ///< how often all threads waited
  std::uint64_t workDone = 0;
  unsigned long long captures = 0;    ///< number of captures begun so far
  int launches = 0;                   ///< number of graph launches so far
  std::atomic<int> globalCaptures{0}; ///< open captures in global mode
  bool timesInGraphs = true;          ///< set by setTimesInGraphs()
  InFlight inFlight;

  bool advance(cudaStream_t stream);
  bool advanceAny(cudaStream_t asked);
};

Machine &machine();

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Holds the state of an event that was recorded on a stream.
struct EventState {
  bool done = false;
  std::uint64_t when = 0; ///< Machine::workDone when the event happened
  PendingWork past; ///< earlier work of its stream that may not have ended
};

/// While an object exists, device memory is accessible. Otherwise an access by
/// the host faults, as on a machine with real devices.
struct WithinReach {
  WithinReach();
  ~WithinReach();
  WithinReach(const WithinReach &) = delete;
  WithinReach &operator=(const WithinReach &) = delete;
};

/// Queues work on a stream, or adds a node to the stream's capture.
/// \param mayWait  the work may wait for other devices
cudaError_t put(cudaStream_t stream, const Make &make, bool mayWait = false);

} // namespace mtplan::emulator

struct CUstream_st {
  int device = 0;
  std::deque<mtplan::emulator::Polled> work;
  mtplan::emulator::PendingWork past; ///< queued work that may not have ended
  std::shared_ptr<mtplan::emulator::Captured> captured;
  std::size_t last = mtplan::emulator::kNone; ///< last captured node
  std::vector<std::size_t> alsoAfter; ///< more predecessors of the next node
};

struct CUevent_st {
  int device = 0;
  bool keepsTime = false, isOfGraph = false;
  std::shared_ptr<mtplan::emulator::EventState> state; ///< null: never recorded
  std::shared_ptr<mtplan::emulator::Captured> captured;
  std::size_t node = mtplan::emulator::kNone; ///< index in captured->nodes
};

struct CUgraph_st {
  std::vector<mtplan::emulator::Node> nodes;
};

struct CUgraphExec_st {
  std::vector<mtplan::emulator::Node> nodes;
};

#endif // MTPLAN_TESTS_EMULATOR_MACHINE_H

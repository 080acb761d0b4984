//===- machine.h - Streams, events and graphs of devices --------*- C++ -*-===//
//
// What streams.cpp and graphs.cpp share. All is the mutex's.
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

/// A piece of a graph. Those it waits for come before it.
struct Node {
  Make make;
  std::vector<std::size_t> after;
  bool meets = false; ///< it waits for others
};

/// What is being captured from a stream and those that joined it.
struct Captured {
  cudaStream_t origin;
  std::vector<Node> nodes;
  std::vector<cudaStream_t> streams;
  bool isOpen = true, isSpoilt = false;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  unsigned long long number = 0;
};

/// That this thread has begun and not ended, but for relaxed ones.
extern thread_local int captures;
/// That this thread has begun and not ended, of any mode.
extern thread_local int openCaptures;
/// Whether this thread may not do what would have to wait, and could not be
/// captured: for one of its own, or of any thread that forbids it to all.
bool isForbidden();

/// Of the whole process.
struct Machine {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<cudaStream_t> streams; ///< in the order in which they were made
  Pace pace = Pace::first;
  int devices = 1;
  int threads = 1, waiting = 0; ///< that queue work; of them
  std::uint64_t meetings = 0;   ///< of all threads
  std::uint64_t happenings = 0;
  unsigned long long captures = 0;    ///< that were begun
  int launches = 0;                   ///< of graphs
  std::atomic<int> globalCaptures{0}; ///< that are open
  bool timesInGraphs = true;          ///< are told
  InFlight flights;

  bool advance(cudaStream_t stream);
  bool advanceAny(cudaStream_t asked);
};

Machine &machine();

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// What an event that was recorded waits for.
struct Happening {
  bool done = false;
  std::uint64_t when = 0; ///< among all
  Flights past;           ///< that it comes after
};

/// While there is one the memory of devices may be touched; else it is out of
/// the host's reach, as it is on a machine that has devices.
struct WithinReach {
  WithinReach();
  ~WithinReach();
  WithinReach(const WithinReach &) = delete;
  WithinReach &operator=(const WithinReach &) = delete;
};

/// Puts work on a stream, or what makes it into the stream's capture.
/// \param meets  it waits for others
cudaError_t put(cudaStream_t stream, const Make &make, bool meets = false);

} // namespace mtplan::emulator

struct CUstream_st {
  int device = 0;
  std::deque<mtplan::emulator::Polled> work;
  mtplan::emulator::Flights past; ///< of what it was given so far
  std::shared_ptr<mtplan::emulator::Captured> captured;
  std::size_t last = mtplan::emulator::kNone; ///< its last node
  std::vector<std::size_t> alsoAfter; ///< what its next node follows, too
};

struct CUevent_st {
  int device = 0;
  bool keepsTime = false, isOfGraph = false;
  std::shared_ptr<mtplan::emulator::Happening>
      happening; ///< null: never recorded
  std::shared_ptr<mtplan::emulator::Captured> captured;
  std::size_t node = mtplan::emulator::kNone; ///< in it
};

struct CUgraph_st {
  std::vector<mtplan::emulator::Node> nodes;
};

struct CUgraphExec_st {
  std::vector<mtplan::emulator::Node> nodes;
};

#endif // MTPLAN_TESTS_EMULATOR_MACHINE_H

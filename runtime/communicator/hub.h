//===- hub.h - State that thread ranks share --------------------*- C++ -*-===//
//
// The hub records which ranks have failed or ended, and which ranks each rank
// waits for. A wait that exceeds the timeout fails.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_HUB_H
#define MTPLAN_RUNTIME_COMMUNICATOR_HUB_H

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/communicator/waiting.h"

namespace mtplan::runtime {

class Hub {
public:
  Hub(int ranks, const WorldOptions &options);
  Hub(const Hub &) = delete;
  Hub &operator=(const Hub &) = delete;

  int ranks() const { return static_cast<int>(ended.size()); }
  const WorldOptions &options() const { return its; }

  /// Records a failure, unless one has been recorded already.
  void fail(int rank, const std::string &because) noexcept;
  bool hasFailed() const { return failed; }
  /// Throws the recorded failure as an Echo. There must be a failure.
  [[noreturn]] void echo() const;
  void throwIfFailed() const {
    if (failed)
      echo();
  }

  /// Records that a rank's body has returned or thrown.
  void end(int rank) noexcept;
  /// Blocks until all ranks have ended, or until `afterFailure` has passed
  /// since a failure. Returns the ranks that still run.
  std::vector<int> awaitEnds(std::chrono::milliseconds afterFailure);

  /// Registers a gate to wake when a rank fails or ends. The gate must live as
  /// long as the hub.
  void add(Gate &gate);

  /// Describes the wait of a rank. `missing` returns the ranks for which the
  /// rank waits; the function must be cheap, and several threads may call it at
  /// once. The rank calls `withdraw` before it gives up. If `withdraw` returns
  /// false, the wait has succeeded in the meantime.
  struct Await {
    int rank = 0;
    std::function<std::string()> what;
    std::function<std::vector<int>()> missing;
    std::function<bool()> withdraw;
  };

  /// Blocks until done() is true. At the timeout, or if a missing rank has
  /// ended, records a failure and throws CommunicationError. If another rank
  /// has failed, throws that failure. Other threads may change the state that
  /// `done` reads while `done` runs.
  template <typename Done>
  void await(Gate &gate, const Await &wait, const Done &done) {
    if (!spin(done))
      awaitAsleep(gate, wait, done);
  }

  /// Blocks, without a timeout, until done() is true.
  template <typename Done> void awaitSurely(Gate &gate, const Done &done) {
    while (!spin(done))
      gate.sleep(Gate::Clock::now() + std::chrono::seconds(1), done);
  }

private:
  /// Spins on `done`, longer if spinning has recently succeeded on this thread.
  /// Spinning cannot succeed if this thread occupies the processor that the
  /// awaited thread needs.
  template <typename Done> bool spin(const Done &done) const {
    thread_local int spins = kMostSpins;
    if (mayOverlap)
      for (int i = 0; i < spins; ++i) {
        if (done()) {
          spins = std::min(2 * spins, kMostSpins);
          return true;
        }
        pauseProcessor();
      }
    spins = std::max(spins / 2, kLeastSpins);
    const int yields = mayOverlap ? kYields : kYieldsOnSharedProcessors;
    for (int i = 0; i < yields; ++i) {
      if (done())
        return true;
      std::this_thread::yield();
    }
    return done();
  }
  void awaitAsleep(Gate &gate, const Await &wait,
                   const std::function<bool()> &done);
  void wakeAll() noexcept;
  Doing doing(int rank);
  std::string reasonToGiveUp(const Await &wait,
                             std::chrono::milliseconds waited);

  static constexpr int kMostSpins = 1000, kLeastSpins = 8, kYields = 32,
                       kYieldsOnSharedProcessors = 2;

  WorldOptions its;
  bool mayOverlap; ///< whether each rank has a processor
  std::vector<std::atomic<bool>> ended;
  Gate ends;

  mutable std::mutex failure;
  std::atomic<bool> failed{false};
  int failedRank = 0;
  std::string why;

  std::mutex gateList;
  std::vector<Gate *> gates;

  std::mutex board;
  std::vector<std::vector<const Await *>> waits; ///< by rank
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_HUB_H

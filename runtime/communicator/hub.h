//===- hub.h - What ranks that are threads share ----------------*- C++ -*-===//
//
// Who has failed, who has ended, who waits for whom, and the patience rule. The
// meetings and mailboxes of the ranks stand upon it.
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

#include "runtime/communicator/gate.h"
#include "runtime/communicator/waiting.h"

namespace mtplan::runtime {

class Hub {
public:
  Hub(int ranks, const WorldOptions &options);
  Hub(const Hub &) = delete;
  Hub &operator=(const Hub &) = delete;

  int ranks() const { return static_cast<int>(ended.size()); }
  const WorldOptions &options() const { return its; }

  /// The first reason stands.
  void fail(int rank, const std::string &because) noexcept;
  bool hasFailed() const { return failed; }
  /// Throws the echo of the failure; only once there is one.
  [[noreturn]] void echo() const;
  void throwIfFailed() const {
    if (failed)
      echo();
  }

  /// A rank's body has returned or thrown: it will not come any more.
  void end(int rank) noexcept;
  /// Returns once all ranks have ended, or those that go on this long after a
  /// failure.
  std::vector<int> awaitEnds(std::chrono::milliseconds afterFailure);

  /// Gates wake when something fails or ends. Live as long as the hub.
  void add(Gate &gate);

  /// How a rank waits. `done` and `missing` are cheap and called by several
  /// threads at once. `withdraw` is called before giving up; if it returns
  /// false it is done after all.
  struct Await {
    int rank = 0;
    std::function<std::string()> what;
    std::function<std::vector<int>()> missing;
    std::function<bool()> withdraw;
  };

  /// Returns once `done`. Throws, and fails the hub, if patience is lost or a
  /// missing rank has ended; echoes another's failure.
  template <typename Done>
  void await(Gate &gate, const Await &wait, const Done &done) {
    if (!spin(done))
      awaitAsleep(gate, wait, done);
  }

  /// Returns once `done`, whatever happens: for what is sure to come.
  template <typename Done> void awaitSurely(Gate &gate, const Done &done) {
    while (!spin(done))
      gate.sleep(Gate::Clock::now() + std::chrono::seconds(1), done);
  }

private:
  /// Spins for as long as that has helped this thread lately: if both run on
  /// one processor it never does.
  template <typename Done> bool spin(const Done &done) const {
    thread_local int spins = kMostSpins;
    if (mayMeet)
      for (int i = 0; i < spins; ++i) {
        if (done()) {
          spins = std::min(2 * spins, kMostSpins);
          return true;
        }
        pauseProcessor();
      }
    spins = std::max(spins / 2, kLeastSpins);
    for (int i = 0; i < kYields; ++i) {
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

  static constexpr int kMostSpins = 1000, kLeastSpins = 8, kYields = 32;

  WorldOptions its;
  bool mayMeet; ///< a processor for each rank
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

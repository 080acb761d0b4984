//===- waiting.h - How a rank waits, and for whom ---------------*- C++ -*-===//
//
// A Gate lets a thread sleep until another one acts. A rank that lost its
// patience may wait for one that waits itself: explain() finds the rank that
// keeps all of them waiting.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H
#define MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Lets threads sleep until a condition on atomic variables holds. The
/// variables use sequentially consistent order (the default), so a thread that
/// makes a condition true only has to wake the gate afterwards. That costs one
/// load if no thread sleeps.
class Gate {
public:
  using Clock = std::chrono::steady_clock;

  void wake() {
    if (sleepers == 0)
      return;
    { const std::lock_guard lock(mutex); }
    changed.notify_all();
  }

  /// Returns once `done` returns true, or at `deadline`.
  void sleep(Clock::time_point deadline, const std::function<bool()> &done) {
    std::unique_lock lock(mutex);
    ++sleepers;
    changed.wait_until(lock, deadline, done);
    --sleepers;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<int> sleepers{0};
};

/// Tells the processor that this thread only waits for memory to change.
inline void pauseProcessor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Repeats the failure of another rank.
struct Echo : CommunicationError {
  Echo(int rank, const std::string &why)
      : CommunicationError("rank " + std::to_string(rank) + " failed: " + why) {
  }
};

/// Describes the wait of a rank.
struct Waiting {
  std::string what;         ///< formatted like wordsOf(Call, GroupName)
  std::vector<int> missing; ///< ranks that have not come, ascending
};

/// Describes the state of another rank.
struct Doing {
  enum { working, waiting, ended } state = working;
  Waiting wait; ///< if waiting
};

/// Explains why `rank` gives up after `waited`: follows who waits for whom to a
/// rank that does not wait, or around a cycle. `wait.missing` is not empty.
std::string explain(int rank, const Waiting &wait,
                    std::chrono::milliseconds waited,
                    const std::function<Doing(int)> &doing);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H

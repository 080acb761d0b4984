//===- waiting.h - Waits, and the rank that delays them ---------*- C++ -*-===//
//
// A rank that has timed out may have waited for a rank that itself waits for
// another. explain() finds the rank that delays all of these ranks.
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
/// variables use sequentially consistent order (the default). A thread that
/// makes a condition true must call wake() afterwards, which costs one load if
/// no thread sleeps.
class Gate {
public:
  using Clock = std::chrono::steady_clock;

  void wake() {
    if (sleepers == 0)
      return;
    { const std::lock_guard lock(mutex); }
    changed.notify_all();
  }

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

inline void pauseProcessor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Reports the failure of another rank.
struct Echo : CommunicationError {
  Echo(int rank, const std::string &why)
      : CommunicationError("rank " + std::to_string(rank) + " failed: " + why) {
  }
};

struct Waiting {
  std::string what;         ///< formatted like wordsOf(Call, GroupName)
  std::vector<int> missing; ///< ranks waited for, ascending
};

struct Doing {
  enum { working, waiting, ended } state = working;
  Waiting wait; ///< if waiting
};

/// Returns the error message of `rank`, which times out after `waited`. Follows
/// the chain of waiting ranks to a rank that does not wait, or to a cycle.
/// `wait.missing` must not be empty.
std::string explain(int rank, const Waiting &wait,
                    std::chrono::milliseconds waited,
                    const std::function<Doing(int)> &doing);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_WAITING_H

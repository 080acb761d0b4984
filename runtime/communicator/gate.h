//===- gate.h - Where threads wait for each other ---------------*- C++ -*-===//
//
// Sleeping and waking for what is kept in atomic variables, which are written
// and read in the one order of all threads (the default): who makes something
// true wakes the gate afterwards, at the price of one load if nobody sleeps.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_GATE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_GATE_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace mtplan::runtime {

class Gate {
public:
  using Clock = std::chrono::steady_clock;

  void wake() {
    if (sleepers == 0)
      return;
    { const std::lock_guard lock(mutex); }
    changed.notify_all();
  }

  /// Returns once `done` is true, or at `deadline`.
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

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_GATE_H

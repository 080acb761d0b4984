//===- gate.h - Sleeping until another thread acts --------------*- C++ -*-===//
//
// Lets threads sleep until a condition on atomic variables holds. The variables
// use sequentially consistent order (the default), so a thread that makes a
// condition true only has to wake the gate afterwards. That costs one load if
// no thread sleeps.
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

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_GATE_H

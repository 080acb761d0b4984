//===- watchdog.h - Detects calls that hang on devices ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_WATCHDOG_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_WATCHDOG_H

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime::cuda {

/// Represents communication that a watchdog monitors.
class Ward {
public:
  using Clock = std::chrono::steady_clock;

  virtual ~Ward() = default;
  /// Throws if a fault has occurred or a call has timed out. Waits for other
  /// ranks only to find the cause of a timeout.
  virtual void look(Clock::time_point now) = 0;
  /// Aborts all calls in flight. Any thread may call this function.
  virtual void abort() noexcept = 0;
};

/// Every rank has a watchdog thread, which monitors the rank's queued calls and
/// the host's world. After the first fault, the watchdog aborts all
/// communication of the rank's device, so that no stream stays blocked, and
/// reports the fault to the host's world. The watchdogs of the other ranks then
/// abort their communication too.
class Watchdog {
public:
  /// Starts the watchdog thread, for the calling thread's current device.
  /// \param host  must outlive the watchdog
  explicit Watchdog(World &host);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  World &world() const { return host; }

  void add(std::shared_ptr<Ward> ward);
  /// Sets the step of the following calls; 0 means outside of steps.
  void beginStep(std::int64_t number) { step = number; }
  std::int64_t currentStep() const { return step; }
  /// Throws the fault that has ended the communication, if there is one.
  void check() const;
  bool hasFailed() const { return failed; }
  /// Ends the communication because of the exception that is being handled,
  /// unless an earlier fault has ended it.
  void fail() noexcept;
  /// Ends the watchdog thread.
  void stop();
  /// Aborts all wards concurrently, because one ward may wait for a graph that
  /// waits for another ward.
  void abortAll() noexcept;

private:
  void run();
  void lookAtAll();

  World &host;
  const int device;
  std::atomic<std::int64_t> step{0};
  std::atomic<bool> failed{false};
  mutable std::mutex mutex; ///< guards the members below
  std::condition_variable changed;
  bool stopping = false;
  std::exception_ptr why;
  std::vector<std::shared_ptr<Ward>> wards;
  std::thread thread;
};

/// Throws the watchdog's fault, if there is one; otherwise sleeps for 50 us,
/// the time between two polls.
void awaitAMoment(const Watchdog &watchdog);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_WATCHDOG_H

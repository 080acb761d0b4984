//===- watchdog.h - Notices that devices hang -------------------*- C++ -*-===//
//
// The watchdog is a thread in every rank. It watches the rank's queued calls
// and the host's world. The first fault aborts all communication of this rank's
// device, so that its streams go on, and fails the host's world, which tells
// the other ranks. Their watchdogs then do the same.
//
//===----------------------------------------------------------------------===//

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

/// Something that a watchdog watches.
class Ward {
public:
  using Clock = std::chrono::steady_clock;

  virtual ~Ward() = default;
  /// Throws a fault since the last look. Waits for other ranks only if they
  /// have kept this one waiting for longer than the world's patience.
  virtual void look(Clock::time_point now) = 0;
  /// Aborts all calls in flight. Any thread may call it.
  virtual void abort() noexcept = 0;
};

/// Watches the wards of a rank.
class Watchdog {
public:
  /// Watches the calling thread's present device.
  /// \param host  outlives it
  explicit Watchdog(World &host);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  World &world() const { return host; }

  void add(std::shared_ptr<Ward> ward);
  /// Sets the step of the calls from now on; 0 for none.
  void beginStep(std::int64_t number) { step = number; }
  std::int64_t currentStep() const { return step; }
  /// Throws the fault that has ended communication, if there is one.
  void check() const;
  bool hasFailed() const { return failed; }
  /// Ends communication because of the exception that is being handled. The
  /// first fault is kept.
  void fail() noexcept;
  void stop();
  /// Aborts all wards at once: one may have to wait for a graph that waits for
  /// another.
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

/// Sleeps a moment between two polls. Throws the watchdog's fault.
void awaitAMoment(const Watchdog &watchdog);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_WATCHDOG_H

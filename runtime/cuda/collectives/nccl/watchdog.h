//===- watchdog.h - Who notices that the devices hang -----------*- C++ -*-===//
//
// A thread of its own in every rank. It looks after what the rank has queued
// that others have a part in, and after the host's world. The first fault ends
// all communication of this rank's device, so that its streams go on, and of
// its host, which tells the other ranks, whose watchdogs then do the same.
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

/// What a watchdog looks after.
class Ward {
public:
  using Clock = std::chrono::steady_clock;

  virtual ~Ward() = default;
  /// Throws what has gone wrong since. Waits for other ranks only if they have
  /// kept this one waiting for longer than the world's patience.
  virtual void look(Clock::time_point now) = 0;
  /// Ends what is under way. From any thread.
  virtual void abort() noexcept = 0;
};

class Watchdog {
public:
  /// On the thread's present device. \param host  outlives it
  explicit Watchdog(World &host);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  World &world() const { return host; }

  void add(std::shared_ptr<Ward> ward);
  /// Of calls from now on; 0: of none.
  void beginStep(std::int64_t number) { step = number; }
  std::int64_t currentStep() const { return step; }
  /// Throws why communication has ended, if it has.
  void check() const;
  bool hasFailed() const { return failed; }
  /// The fault that is being handled; the first stands.
  void fail() noexcept;
  void stop();
  /// Of all wards at once: one may have to wait until a graph ends that waits
  /// for another.
  void abortAll() noexcept;

private:
  void run();
  void lookAtAll();

  World &host;
  const int device;
  std::atomic<std::int64_t> step{0};
  std::atomic<bool> failed{false};
  mutable std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  bool stopping = false;
  std::exception_ptr why;
  std::vector<std::shared_ptr<Ward>> wards;
  std::thread thread;
};

/// Sleeps a moment, for who polls. Throws what the watchdog has found.
void awaitAMoment(const Watchdog &watchdog);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_NCCL_WATCHDOG_H

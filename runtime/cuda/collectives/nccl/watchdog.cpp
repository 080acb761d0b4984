//===- watchdog.cpp - Detects calls that hang on devices ------------------===//

#include "runtime/cuda/collectives/nccl/watchdog.h"

#include <algorithm>

#include "runtime/communicator/waiting.h"
#include "runtime/cuda/handles.h"

namespace mtplan::runtime::cuda {

namespace {

using std::chrono::milliseconds;

/// Returns the polling interval: short compared with the timeout, and long
/// compared with the cost of a poll.
milliseconds interval(const World &host) {
  return std::clamp(host.patience() / 50, milliseconds(1), milliseconds(20));
}

} // namespace

Watchdog::Watchdog(World &itsHost)
    : host(itsHost), device(presentDevice()), thread([this] { run(); }) {}

void Watchdog::add(std::shared_ptr<Ward> ward) {
  const std::lock_guard lock(mutex);
  wards.push_back(std::move(ward));
}

void Watchdog::check() const {
  if (!failed)
    return;
  const std::lock_guard lock(mutex);
  std::rethrow_exception(why);
}

void Watchdog::fail() noexcept {
  {
    const std::lock_guard lock(mutex);
    if (failed)
      return;
    why = std::current_exception();
    failed = true;
  }
  try {
    throw;
  } catch (const Echo &) { // all ranks know this failure
  } catch (const std::exception &error) {
    host.fail(error.what());
  }
  abortAll();
}

void Watchdog::abortAll() noexcept {
  std::vector<std::shared_ptr<Ward>> all;
  {
    const std::lock_guard lock(mutex);
    all = wards;
  }
  std::vector<std::jthread> threads;
  threads.reserve(all.size());
  for (const auto &ward : all)
    threads.emplace_back([this, &ward] {
      cudaSetDevice(device);
      ward->abort();
    });
}

void Watchdog::stop() {
  {
    const std::lock_guard lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  if (thread.joinable())
    thread.join();
}

void Watchdog::lookAtAll() {
  host.check();
  std::vector<std::shared_ptr<Ward>> all;
  {
    const std::lock_guard lock(mutex);
    all = wards;
  }
  for (const auto &ward : all)
    ward->look(Ward::Clock::now());
}

void Watchdog::run() {
  try {
    MTPLAN_CUDA(cudaSetDevice(device));
    for (std::unique_lock lock(mutex); !stopping && !failed;) {
      lock.unlock();
      lookAtAll();
      lock.lock();
      changed.wait_for(lock, interval(host),
                       [&] { return stopping || failed; });
    }
  } catch (...) {
    fail();
  }
}

void awaitAMoment(const Watchdog &watchdog) {
  watchdog.check();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

} // namespace mtplan::runtime::cuda

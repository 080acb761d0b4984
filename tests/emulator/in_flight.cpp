//===- in_flight.cpp - Work that may wait for other devices ---------------===//

#include "tests/emulator/in_flight.h"

#include <thread>
#include <utility>

#include "tests/emulator/machine.h"

namespace mtplan::emulator {
void setMemoryWatch(bool isKept, std::chrono::milliseconds lateness) {
  const std::lock_guard lock(machine().mutex);
  machine().inFlight.isWatched = isKept;
  machine().inFlight.lateness = lateness;
}

std::vector<std::string> takeMemoryFaults() {
  const std::lock_guard lock(machine().mutex);
  return std::exchange(machine().inFlight.faults, {});
}

cudaError_t whyNoMemoryNow(const char *call) {
  int device = 0;
  cudaGetDevice(&device);
  Machine &all = machine();
  std::unique_lock lock(all.mutex);
  InFlight &inFlight = all.inFlight;
  if (!inFlight.isWatched || all.devices < 2)
    return cudaSuccess;
  if (device == all.devices - 1) {
    const std::chrono::milliseconds time = inFlight.lateness;
    lock.unlock();
    std::this_thread::sleep_for(time);
    lock.lock();
  }
  if (inFlight.devices.empty())
    return cudaSuccess;
  inFlight.faults.push_back(std::string(call) + " on device " +
                            std::to_string(device) + ", while device " +
                            std::to_string(inFlight.devices.begin()->second) +
                            " may wait for others");
  return cudaErrorNotPermitted;
}

} // namespace mtplan::emulator

//===- in_flight.h - Work that may wait for other devices -------*- C++ -*-===//
//
// CUDA's memory calls may wait for other devices. A process that allocates
// while one of its devices waits for another may therefore deadlock, too rarely
// for a test to see it. On the emulator, a memory call that may wait fails.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EMULATOR_IN_FLIGHT_H
#define MTPLAN_TESTS_EMULATOR_IN_FLIGHT_H

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

namespace mtplan::emulator {

/// Turns the check on or off in this process. In a process with several
/// devices, memory calls fail while a device may have work that waits for other
/// devices (enqueuePolled) and the host has not waited for the end of this
/// work. NCCL makes memory calls when it creates a communicator and at a
/// communicator's first calls, which create connections.
/// \param lateness  delay of every memory call on the last device, so that
///                  other ranks are far ahead unless they wait for this device
void setMemoryWatch(bool isKept, std::chrono::milliseconds lateness = {});
/// Returns the memory calls that failed since the last call of this function.
std::vector<std::string> takeMemoryFaults();

/// Returns why a memory call may not be made now, or cudaSuccess. The caller
/// must not hold the machine's mutex.
cudaError_t whyNoMemoryNow(const char *call);

/// Holds pieces of work that may wait for other devices, each by the number
/// that InFlight::begin() returned.
using PendingWork = std::set<std::uint64_t>;

/// Tracks work that may wait for other devices, until the host knows that the
/// work has ended.
class InFlight {
public:
  std::uint64_t begin(int device) {
    devices[++last] = device;
    return last;
  }
  /// Removes work that the host has waited for.
  void end(const PendingWork &ended) {
    for (const std::uint64_t one : ended)
      devices.erase(one);
  }
  /// Removes all work of a device.
  void endAll(int device) {
    std::erase_if(devices,
                  [&](const auto &one) { return one.second == device; });
  }
  /// Adds to `to` the numbers in `those` whose work may not have ended.
  void add(PendingWork &to, const PendingWork &those) const {
    for (const std::uint64_t one : those)
      if (devices.contains(one))
        to.insert(one);
  }

  std::map<std::uint64_t, int> devices; ///< device of each piece, by number
  bool isWatched = false;
  std::chrono::milliseconds lateness{};
  std::vector<std::string> faults;

private:
  std::uint64_t last = 0;
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_IN_FLIGHT_H

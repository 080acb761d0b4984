//===- in_flight.h - Work that may still wait for others --------*- C++ -*-===//
//
// CUDA's memory calls may wait until no device works that others reach into. A
// process with several of them that asks for memory while one waits for another
// so may stand still for ever, seldom enough to be found on no machine. Here
// the call fails.
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

/// From now on, of this process: where there are several devices no memory may
/// be asked for or given back while one of them was given work that waits for
/// others (enqueuePolled) and the host has not waited for its end. NCCL asks
/// for some to make communicators, and for connections at first calls.
/// \param lateness  what every such call takes on the last device: who goes on
///                  without it is far ahead then
void setMemoryWatch(bool isKept, std::chrono::milliseconds lateness = {});
/// What that forbade since the last time.
std::vector<std::string> takeMemoryFaults();

/// Why the call may not be made now. Not under the machine's mutex.
cudaError_t whyNoMemoryNow(const char *call);

/// Work that waits for others, by number.
using Flights = std::set<std::uint64_t>;

/// What of it may not have ended, as far as the host knows.
class InFlight {
public:
  std::uint64_t begin(int device) {
    devices[++last] = device;
    return last;
  }
  /// The host has waited for all of them.
  void end(const Flights &ended) {
    for (const std::uint64_t one : ended)
      devices.erase(one);
  }
  /// For all of a device.
  void endAll(int device) {
    std::erase_if(devices,
                  [&](const auto &one) { return one.second == device; });
  }
  /// `to` comes after those, too.
  void add(Flights &to, const Flights &those) const {
    for (const std::uint64_t one : those)
      if (devices.contains(one))
        to.insert(one);
  }

  std::map<std::uint64_t, int> devices; ///< by number
  bool isWatched = false;
  std::chrono::milliseconds lateness{};
  std::vector<std::string> faults;

private:
  std::uint64_t last = 0;
};

} // namespace mtplan::emulator

#endif // MTPLAN_TESTS_EMULATOR_IN_FLIGHT_H

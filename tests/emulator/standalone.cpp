//===- standalone.cpp - Settings for emitted programs ---------------------===//
//
// Only emitted programs link this file. Environment variables set the number of
// devices and threads (MTPLAN_DEVICES), the order of streams (MTPLAN_PACE) and
// the delay of memory calls in ms (MTPLAN_LATENESS). The file defines
// ncclCommSplit, which only emitted programs call.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <nccl.h>

#include "tests/emulator/in_flight.h"
#include "tests/emulator/streams.h"

namespace {

/// Holds the arguments of one rank's ncclCommSplit.
struct Part {
  int rank, color, key;
};

/// Describes an ncclCommSplit, which waits until all ranks have called it.
struct Split {
  std::vector<Part> parts;
  std::map<int, ncclUniqueId> ids; ///< by color
};

std::mutex mutex;
std::condition_variable changed;
std::map<int, Split> splits;      ///< by number of the split, from 0
std::map<ncclComm_t, int> called; ///< number of splits so far, by communicator

[[maybe_unused]] const bool kSet = [] {
  if (const char *devices = std::getenv("MTPLAN_DEVICES"))
    for (const auto set :
         {mtplan::emulator::setDevices, mtplan::emulator::setThreads})
      set(std::atoi(devices));
  using mtplan::emulator::StreamOrder;
  const std::map<std::string, StreamOrder> paces = {
      {"first", StreamOrder::first},
      {"last", StreamOrder::last},
      {"asked", StreamOrder::asked}};
  if (const char *pace = std::getenv("MTPLAN_PACE"))
    mtplan::emulator::setStreamOrder(paces.at(pace));
  const char *lateness = std::getenv("MTPLAN_LATENESS");
  mtplan::emulator::setMemoryWatch(
      true, std::chrono::milliseconds(lateness ? std::atoi(lateness) : 0));
  return true;
}();

} // namespace

/// Creates a communicator for the ranks with the same color, as NCCL does.
/// Supports one parent communicator per process.
extern "C" ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                                      ncclComm_t *newcomm,
                                      ncclConfig_t * /*config*/) {
  int rank = 0, ranks = 0;
  ncclCommUserRank(comm, &rank);
  ncclCommCount(comm, &ranks);
  std::unique_lock lock(mutex);
  Split &split = splits[called[comm]++];
  split.parts.push_back({rank, color, key});
  if (!split.ids.contains(color))
    ncclGetUniqueId(&split.ids[color]);
  changed.notify_all();
  changed.wait(lock, [&] {
    return split.parts.size() == static_cast<std::size_t>(ranks);
  });
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  std::vector<Part> mine;
  std::ranges::copy_if(split.parts, std::back_inserter(mine),
                       [&](const Part &one) { return one.color == color; });
  const auto place = std::ranges::count_if(mine, [&](const Part &one) {
    return one.key < key || (one.key == key && one.rank < rank);
  });
  const ncclUniqueId id = split.ids[color];
  lock.unlock();
  return ncclCommInitRank(newcomm, static_cast<int>(mine.size()), id,
                          static_cast<int>(place));
}

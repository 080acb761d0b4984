//===- standalone.cpp - What a program that stands alone needs beside -----===//
//
// Linked to emitted programs only: as many devices as MTPLAN_DEVICES says, with
// a thread each, whose streams go on as MTPLAN_PACE says, the watch over memory
// calls with its MTPLAN_LATENESS in ms, and the one function of NCCL that
// nobody else calls.
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

/// What one rank said when it split its communicator.
struct Part {
  int rank, color, key;
};

/// One split, until all ranks have come to it.
struct Split {
  std::vector<Part> parts;
  std::map<int, ncclUniqueId> ids; ///< by color
};

std::mutex mutex;
std::condition_variable changed;
std::map<int, Split> splits;      ///< by their number
std::map<ncclComm_t, int> called; ///< how many, by who calls

[[maybe_unused]] const bool kSet = [] {
  if (const char *devices = std::getenv("MTPLAN_DEVICES"))
    for (const auto set :
         {mtplan::emulator::setDevices, mtplan::emulator::setThreads})
      set(std::atoi(devices));
  using mtplan::emulator::Pace;
  const std::map<std::string, Pace> paces = {
      {"first", Pace::first}, {"last", Pace::last}, {"asked", Pace::asked}};
  if (const char *pace = std::getenv("MTPLAN_PACE"))
    mtplan::emulator::setPace(paces.at(pace));
  const char *lateness = std::getenv("MTPLAN_LATENESS");
  mtplan::emulator::setMemoryWatch(
      true, std::chrono::milliseconds(lateness ? std::atoi(lateness) : 0));
  return true;
}();

} // namespace

/// Of one communicator of the process.
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

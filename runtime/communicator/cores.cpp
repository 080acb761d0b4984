//===- cores.cpp - Cores for each rank ------------------------------------===//

#include "runtime/communicator/cores.h"

#include <algorithm>
#include <thread>

#include <sched.h>

namespace mtplan::runtime {
namespace {

// Those that the launcher has bound this process to, or all.
int coresAllowed(int cores) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return cores;
  return std::max(1, CPU_COUNT(&set));
}

} // namespace

int ranksOfHost(const Launch &launch, int ranks) {
  return launch.transport == Transport::threads
             ? ranks
             : std::min(launch.localRanks.value_or(ranks), ranks);
}

int coresOfRank(const Launch &launch, int ranks) {
  const int cores =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int allowed = coresAllowed(cores),
            here = std::max(1, ranksOfHost(launch, ranks));
  // Threads have the cores of their process together; a process has its own.
  return std::max(1, launch.transport == Transport::threads
                         ? allowed / here
                         : std::min(allowed, cores / here));
}

} // namespace mtplan::runtime

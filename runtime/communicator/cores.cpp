//===- cores.cpp - Processor cores per rank -------------------------------===//

#include "runtime/communicator/cores.h"

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace mtplan::runtime {
namespace {

// Returns the number of cores in this process's affinity mask, or all.
int coresAllowed(int cores) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return cores;
  return std::max(1, CPU_COUNT(&set));
}

int coresOfHost() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

struct Whereabouts {
  std::array<char, 64> host{};
  std::int32_t process = 0;
};

} // namespace

int ranksOfHost(const Launch &launch, int ranks) {
  return launch.transport == Transport::threads
             ? ranks
             : std::min(launch.localRanks.value_or(ranks), ranks);
}

int coresOfRank(const Launch &launch, int ranks) {
  const int cores = coresOfHost();
  const int allowed = coresAllowed(cores),
            here = std::max(1, ranksOfHost(launch, ranks));
  // Ranks that are threads share the cores of their process.
  return std::max(1, launch.transport == Transport::threads
                         ? allowed / here
                         : std::min(allowed, cores / here));
}

int coresOfRank(World &world) {
  static_assert(sizeof(Whereabouts) % 4 == 0);
  Whereabouts mine;
  gethostname(mine.host.data(), mine.host.size() - 1);
  mine.process = getpid();
  std::vector<Whereabouts> all(static_cast<std::size_t>(world.size()));
  world.allRanks("cores")->allGather(
      "where ranks are", &mine, all.data(),
      {ElementType::i32, 1, sizeof(Whereabouts) / 4});
  int here = 0, threads = 0;
  for (const Whereabouts &each : all)
    if (each.host == mine.host) {
      ++here;
      threads += each.process == mine.process;
    }
  const int cores = coresOfHost();
  return std::max(1, std::min(coresAllowed(cores) / threads, cores / here));
}

} // namespace mtplan::runtime

//===- cores.cpp - Cores for each rank ------------------------------------===//

#include "runtime/communicator/cores.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include <sched.h>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {
namespace {

int numberIn(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? std::atoi(value) : 0;
}

// Slurm's "2(x3),1": three nodes with two each, then one with one.
int tasksOfNode(const std::string &list, int node) {
  std::istringstream all(list);
  for (std::string part; std::getline(all, part, ',');) {
    const std::size_t times = part.find("(x");
    node -= times == std::string::npos
                ? 1
                : std::max(1, std::atoi(part.c_str() + times + 2));
    if (node < 0)
      return std::atoi(part.c_str());
  }
  return 0;
}

// Those that the launcher has bound this process to, or all.
int coresAllowed(int cores) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return cores;
  return std::max(1, CPU_COUNT(&set));
}

} // namespace

// Open MPI, MPICH, Slurm.
int ranksOfHost(int ranks) {
  if (!isUnderMpi())
    return ranks;
  const char *tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  for (int here :
       {numberIn("OMPI_COMM_WORLD_LOCAL_SIZE"), numberIn("MPI_LOCALNRANKS"),
        tasks ? tasksOfNode(tasks, numberIn("SLURM_NODEID")) : 0})
    if (here > 0)
      return std::min(here, ranks);
  return ranks;
}

int coresOfRank(int ranks) {
  const int cores =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int allowed = coresAllowed(cores),
            here = std::max(1, ranksOfHost(ranks));
  // Threads have the cores of their process together; a process has its own.
  return std::max(1, isUnderMpi() ? std::min(allowed, cores / here)
                                  : allowed / here);
}

} // namespace mtplan::runtime

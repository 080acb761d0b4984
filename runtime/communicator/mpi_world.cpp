//===- mpi_world.cpp - Ranks as MPI processes -----------------------------===//

#include "runtime/communicator/mpi_world.h"

#include <csignal>
#include <cstdlib>
#include <optional>

#include <sys/time.h>
#include <unistd.h>

#include "runtime/communicator/launch.h"
#include "runtime/communicator/mpi_wire.h"
#include "runtime/communicator/process_world.h"
#include "runtime/communicator/termination.h"

namespace mtplan::runtime {
namespace {

/// Ends this process after `time`, in case the launcher is slow or cannot end
/// it.
void endSoon(std::chrono::milliseconds time) {
  struct sigaction action = {};
  action.sa_handler = [](int) { _exit(EXIT_FAILURE); };
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer = {};
  timer.it_value.tv_usec = 1000 * time.count();
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Ends all processes.
[[noreturn]] void endAll(const WorldOptions &options, int rank,
                         const std::string &why) {
  sayWhy(options, rank, why);
  endSoon(std::chrono::milliseconds(300));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

} // namespace

void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body) {
  // With a single-copy mechanism, Open MPI silently ends a process that reads
  // the memory of one that has died. Through shared memory the process waits
  // and names it; on two cores of a virtual machine that is also twice as fast.
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", /*overwrite=*/0);
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MpiWire wire;
  std::optional<ProcessLink> link(std::in_place, wire, options);
  if (link->size() != ranks)
    endAll(options, link->rank(),
           "was started as one of " + std::to_string(ranks) +
               " processes, but MPI knows of " + std::to_string(link->size()) +
               ": start them with this MPI's mpirun, or with srun");
  listenForTermination();
  if (const std::string why = runOver(*link, body); !why.empty())
    endAll(options, link->rank(), why);
  link.reset();
  MPI_Finalize();
}

} // namespace mtplan::runtime

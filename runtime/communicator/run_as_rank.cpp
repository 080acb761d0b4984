//===- run_as_rank.cpp - Runs one rank of several processes ---------------===//

#include "runtime/communicator/launch.h"
#include "runtime/communicator/process_world.h"

namespace mtplan::runtime {

void runAsRank(const Launch &launch, const WorldOptions &options,
               const std::function<void(World &)> &body) {
  switch (launch.transport) {
  case Transport::mpi:
    runUnderMpi(launch.ranks, options, body);
    break;
  case Transport::sockets:
    runOverTcp(launch.start, options, body);
    break;
  case Transport::threads:
    throw LaunchError("this process was started alone");
  }
}

} // namespace mtplan::runtime

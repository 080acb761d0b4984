//===- mpi_world.h - Ranks as processes of MPI ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_WORLD_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_WORLD_H

#include <functional>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Runs `body` on this process, one of the `ranks` of MPI_COMM_WORLD, as
/// runAsRank does (launch.h). Throws where this was built without MPI.
void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MPI_WORLD_H

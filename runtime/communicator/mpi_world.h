//===- mpi_world.h - Ranks as MPI processes ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_WORLD_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_WORLD_H

#include <functional>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

/// Runs `body` on this process, one of the `ranks` of MPI_COMM_WORLD, like
/// runAsRank (launch.h). Throws if this program was built without MPI.
void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MPI_WORLD_H

//===- mpi_absent.cpp - Ranks as processes, where there is no MPI ---------===//

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

void runUnderMpi(const WorldOptions & /*options*/,
                 const std::function<void(World &)> & /*body*/) {
  throw CommunicationError("this program was built without MPI; install Open "
                           "MPI's development files and build it again");
}

} // namespace mtplan::runtime

//===- mpi_absent.cpp - Replaces MPI in a build without it ----------------===//

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

MpiBuild builtMpi() { return MpiBuild::none; }

void runUnderMpi(int /*ranks*/, const WorldOptions & /*options*/,
                 const std::function<void(World &)> & /*body*/) {
  throw CommunicationError("this program was built without MPI; install Open "
                           "MPI's development files and build it again");
}

} // namespace mtplan::runtime

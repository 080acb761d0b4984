//===- mpi_build.cpp - Names the MPI of this build ------------------------===//

#include <mpi.h>

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

MpiBuild builtMpi() {
#ifdef OPEN_MPI
  return MpiBuild::openMpi;
#else
  return MpiBuild::mpich;
#endif
}

} // namespace mtplan::runtime

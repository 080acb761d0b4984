//===- mpi_build.cpp - Which MPI this was built with ----------------------===//

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

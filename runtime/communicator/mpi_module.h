//===- mpi_module.h - What the file with MPI's code answers -----*- C++ -*-===//
//
// For a program that loads MPI only where it was started by it. Both sides are
// of one build: the table has no version.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H

#include "runtime/communicator/mpi_world.h"

namespace mtplan::runtime {

struct MpiModuleTable {
  decltype(&runUnderMpi) run;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H

//===- mpi_module.h - Interface of the MPI module ---------------*- C++ -*-===//
//
// Interface of the module that a program loads only if MPI started it. Both
// sides come from one build, so the table has no version.
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

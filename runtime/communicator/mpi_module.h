//===- mpi_module.h - Interface of the MPI module ---------------*- C++ -*-===//
//
// A program loads the MPI module only if MPI started the program. The program
// and the module come from one build, so the table has no version.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H

#include <mpi.h>

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

#ifdef OPEN_MPI
inline constexpr MpiBuild kMpiOfBuild = MpiBuild::openMpi;
#else
inline constexpr MpiBuild kMpiOfBuild = MpiBuild::mpich;
#endif

struct MpiModuleTable {
  decltype(&runUnderMpi) run;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H

//===- mpi_module.h - Interface of the MPI module ---------------*- C++ -*-===//
//
// Interface of the module that a program loads only if MPI started it. Both
// sides come from one build, so the table has no version.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H
#define MTPLAN_RUNTIME_COMMUNICATOR_MPI_MODULE_H

#include <mpi.h>

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

/// Names the MPI of this build.
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

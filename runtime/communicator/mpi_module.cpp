//===- mpi_module.cpp - The entry of the MPI module -----------------------===//

#include "runtime/communicator/mpi_module.h"

using namespace mtplan::runtime;

extern "C" const void *mtplanMpiModule() {
  static const MpiModuleTable table = {&runUnderMpi};
  return &table;
}

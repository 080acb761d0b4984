//===- mpi_module.cpp - What the file with MPI's code answers -------------===//

#include "runtime/communicator/mpi_module.h"

using namespace mtplan::runtime;

extern "C" const void *mtplanMpiModule() {
  static const MpiModuleTable table = {&runUnderMpi};
  return &table;
}

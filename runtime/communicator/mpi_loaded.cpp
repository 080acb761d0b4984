//===- mpi_loaded.cpp - Loads the MPI module at run time ------------------===//

#include "runtime/communicator/mpi_module.h"
#include "runtime/modules/module.h"

namespace mtplan::runtime {

MpiBuild builtMpi() { return kMpiOfBuild; }

void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body) {
  const MpiModuleTable *table = nullptr;
  try {
    table = static_cast<const MpiModuleTable *>(
        moduleTable("libmtplan_mpi.so", "mtplanMpiModule"));
  } catch (const ModuleError &error) {
    throw CommunicationError(
        std::string("MPI started this process, but ") + error.what() +
        "; the folder of MPI's libraries must be in LD_LIBRARY_PATH");
  }
  table->run(ranks, options, body);
}

} // namespace mtplan::runtime

//===- environment.cpp - How this process was started ---------------------===//

#include <cstdlib>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

// mpirun of Open MPI, mpiexec of MPICH (and srun --mpi=pmi2), and srun, which
// sets this one only for the processes that it starts, not for the script that
// calls it.
bool isUnderMpi() {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char *value = std::getenv(name); value && std::atoi(value) > 1)
      return true;
  return false;
}

} // namespace mtplan::runtime

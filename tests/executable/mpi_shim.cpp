//===- mpi_shim.cpp - What MPI's start finds in the environment -----------===//
//
// Loaded before all other libraries (LD_PRELOAD). An MPI that knows of CUDA may
// start it, and CUDA reads these once.
//
//===----------------------------------------------------------------------===//

#include <cstdio>
#include <cstdlib>
#include <string>

#include <mpi.h>

static std::string given(const char *name) {
  const char *value = std::getenv(name);
  return std::string(name) + "=" + (value ? value : "");
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  // One write, or what ranks say would be mixed.
  const std::string line = "MPI starts with " + given("CUDA_MODULE_LOADING") +
                           " " + given("CUDA_DEVICE_MAX_CONNECTIONS") + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  return PMPI_Init_thread(argc, argv, required, provided);
}

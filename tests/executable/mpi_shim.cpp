//===- mpi_shim.cpp - Prints the environment of MPI's start ---------------===//
//
// This library is loaded before all others (LD_PRELOAD). It prints two
// variables of CUDA when MPI is initialised, because an MPI with CUDA support
// may then initialise CUDA, which reads the variables once.
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
  // A single write keeps the lines of ranks apart.
  const std::string line = "MPI starts with " + given("CUDA_MODULE_LOADING") +
                           " " + given("CUDA_DEVICE_MAX_CONNECTIONS") + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  return PMPI_Init_thread(argc, argv, required, provided);
}

//===- backends.cpp - The backend of a run --------------------------------===//

#include "tools/run/backends.h"

#include <fmt/format.h>

#include "runtime/communicator/cores.h"
#include "runtime/cuda/cuda_backend.h"

namespace mtplan::tools {

using namespace runtime;

void prepareBackend(const RunFlags &flags, int ranks) {
  if (flags.backend == "cuda")
    prepareCuda(ranks);
}

void checkBackend(const RunFlags &flags) {
  if (flags.backend == "cuda" && cudaDevices() == 0)
    throw BadInput(fmt::format(
        "--backend cuda: {}; --backend cpu trains the same plan on CPU ranks",
        whyNoCudaDevice()));
}

bool wantsProcesses(const RunFlags &flags, int ranks) {
  const int devices = flags.backend == "cuda" ? cudaDevices() : 0;
  const bool shares = devices == 1 && flags.ranksAs != "processes";
  if (devices > 0 && ranks > devices && !shares)
    throw BadInput(fmt::format(
        "--backend cuda: {} ranks on this machine, but {} GPU{}: one for each "
        "rank, or (CUDA_VISIBLE_DEVICES=0) one for all ranks of one process",
        ranks, devices, devices == 1 ? "" : "s"));
  return ranks > 1 && (flags.ranksAs == "processes" ||
                       (flags.ranksAs == "auto" && devices > 1));
}

std::unique_ptr<Backend>
makeBackend(const RunFlags &flags, const Launch &launch, int ranks, int rank) {
  const int threads = flags.threads.value_or(coresOfRank(launch, ranks));
  auto cpu = [threads] { return makeCpuBackend(threads); };
  if (flags.backend == "cpu")
    return cpu();
  checkBackend(flags);
  const int devices = cudaDevices();
  int device = 0;
  if (launch.transport != Transport::threads)
    device = deviceOf(launch, devices);
  else if (devices > 1)
    device = rank;
  useCudaDevice(device);
  return makeCudaBackendBeside(cpu);
}

} // namespace mtplan::tools

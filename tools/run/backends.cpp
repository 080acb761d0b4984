//===- backends.cpp - What a run computes on ------------------------------===//

#include "tools/run/backends.h"

#include <fmt/format.h>

#include "runtime/communicator/cores.h"
#include "runtime/cuda/cuda_backend.h"

namespace mtplan::tools {

using namespace runtime;

void checkBackend(const RunFlags &flags) {
  if (flags.backend == "cuda" && cudaDevices() == 0)
    throw BadInput(fmt::format(
        "--backend cuda: {}; --backend cpu trains the same plan on CPU ranks",
        whyNoCudaDevice()));
}

std::unique_ptr<Backend> makeBackend(const RunFlags &flags, int ranks,
                                     int local, int locals, bool shares) {
  if (flags.backend == "cpu")
    return makeCpuBackend(flags.threads.value_or(coresOfRank(ranks)));
  checkBackend(flags);
  const int devices = cudaDevices();
  const bool one = devices == 1 && (shares || locals == 1);
  if (!one && local >= devices)
    throw BadInput(fmt::format(
        "--backend cuda: {} ranks on this machine, but {} GPU{}: one for each "
        "rank, or{} one for all ranks of one process",
        locals, devices, devices == 1 ? "" : "s",
        shares ? " (CUDA_VISIBLE_DEVICES=0)" : ", without mpirun or srun,"));
  useCudaDevice(one ? 0 : local);
  return makeCudaBackend();
}

} // namespace mtplan::tools

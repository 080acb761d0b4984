//===- backends.h - The backend of a run ------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_BACKENDS_H
#define MTPLAN_TOOLS_RUN_BACKENDS_H

#include <array>
#include <memory>
#include <string_view>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/launch.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

inline constexpr std::array<std::string_view, 2> kBackends = {"cpu", "cuda"};

/// Prepares the backend for a run of `ranks`. Must be called before anything
/// else uses a device, including the start of MPI.
void prepareBackend(const RunFlags &flags, int ranks);

/// Checks that this machine has the backend. Must be called before the backend
/// is used.
/// \throws BadInput if this machine does not have what `--backend` names
void checkBackend(const RunFlags &flags);

/// Returns whether this process should start the ranks as processes rather than
/// threads, by `--ranks-as`.
/// \throws BadInput with both numbers if there are too few GPUs
bool wantsProcesses(const RunFlags &flags, int ranks);

/// Returns the backend of one of `ranks`, for the calling thread. The ranks of
/// a machine get its GPUs in order; ranks that are threads share a single GPU.
/// \throws BadInput, LaunchError with both numbers if there are too few GPUs
std::unique_ptr<runtime::Backend> makeBackend(const RunFlags &flags,
                                              const runtime::Launch &launch,
                                              int ranks, int rank);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_BACKENDS_H

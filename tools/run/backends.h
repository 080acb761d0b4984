//===- backends.h - What a run computes on ----------------------*- C++ -*-===//

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

/// Before anything else that could use a device, MPI's start too, in a run of
/// `ranks`.
void prepareBackend(const RunFlags &flags, int ranks);

/// Before anything else is asked of the backend.
/// \throws BadInput if this machine does not have what `--backend` says
void checkBackend(const RunFlags &flags);

/// Whether ranks that nobody has started are to be processes, as `--ranks-as`
/// says, and not threads of this one.
/// \throws BadInput with both numbers if there are too few GPUs
bool wantsProcesses(const RunFlags &flags, int ranks);

/// Of the rank whose thread calls, one of `ranks`. GPUs go to the ranks of a
/// machine in order; if there is but one, ranks that are threads share it.
/// \throws BadInput, LaunchError with both numbers if there are too few GPUs
std::unique_ptr<runtime::Backend> makeBackend(const RunFlags &flags,
                                              const runtime::Launch &launch,
                                              int ranks, int rank);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_BACKENDS_H

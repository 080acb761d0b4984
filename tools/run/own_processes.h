//===- own_processes.h - Ranks that nobody else has started -----*- C++ -*-===//
//
// This command again, a process for each rank of one machine, which meet as
// torchrun's do. Ranks with a GPU each are better off so: memory calls of one
// thread wait for what other threads' GPUs do, which waits for this one
// (NVIDIA/nccl issue 744).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUN_OWN_PROCESSES_H
#define MTPLAN_TOOLS_RUN_OWN_PROCESSES_H

#include <iosfwd>

namespace mtplan::tools {

/// Runs `ranks` of them until all have ended. SIGTERM, SIGINT and SIGUSR1 go on
/// to them; they end with this process, and, a minute after one has failed, in
/// any case.
/// \return 0, or the exit status of the first that failed: 1 if a signal ended
///         it, which is said
int runOwnProcesses(int ranks, std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_OWN_PROCESSES_H

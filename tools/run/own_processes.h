//===- own_processes.h - Ranks as processes of this command -----*- C++ -*-===//
//
// The command starts itself once per rank of one machine; the processes find
// each other as torchrun's do. Ranks with a GPU each are faster as processes:
// in one process, a memory call of a thread waits for other threads' GPUs,
// which can wait for this thread (NVIDIA/nccl issue 744).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_RUN_OWN_PROCESSES_H
#define MTPLAN_TOOLS_RUN_OWN_PROCESSES_H

#include <iosfwd>

namespace mtplan::tools {

/// Runs `ranks` processes until all have ended. SIGTERM, SIGINT and SIGUSR1 are
/// forwarded to them. They end with this process, and at the latest a minute
/// after one has failed.
/// \return 0, or the exit status of the first that failed; 1 if a signal ended
///   it, which is reported
int runOwnProcesses(int ranks, std::ostream &err);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_OWN_PROCESSES_H

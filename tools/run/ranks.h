//===- ranks.h - Ranks of a run: backends, processes, agreement -*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RANKS_H
#define MTPLAN_TOOLS_RUN_RANKS_H

#include <array>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/communicator/communicator.h"
#include "runtime/communicator/launch.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

inline constexpr std::array<std::string_view, 2> kBackends = {"cpu", "cuda"};

/// Prepares the backend for a run of `ranks`. This function must be called
/// before any other use of a device, including the start of MPI.
void prepareBackend(const RunFlags &flags, int ranks);

/// This check must precede other uses of the backend.
/// \throws BadInput if this machine lacks the backend
void checkBackend(const RunFlags &flags);

/// Returns whether this process starts the ranks as processes instead of
/// threads.
/// \throws BadInput with both numbers if there are too few GPUs
bool wantsProcesses(const RunFlags &flags, int ranks);

/// Returns the backend of a rank, for the calling thread. The ranks of a
/// machine get its GPUs in order; ranks that are threads share a single GPU.
/// \throws BadInput, LaunchError with both numbers if there are too few GPUs
std::unique_ptr<runtime::Backend> makeBackend(const RunFlags &flags,
                                              const runtime::Launch &launch,
                                              int ranks, int rank);

/// Starts this command once per rank of one machine, and waits until all of
/// these processes have ended. The processes connect like processes that
/// torchrun starts, and receive SIGTERM, SIGINT and SIGUSR1 from this process.
/// The processes end if this process ends, and at most a minute after one of
/// the processes has failed. By default, ranks with a GPU each are processes,
/// because threads of one process can deadlock: a memory call of one thread
/// waits for the GPUs of other threads, and these may wait for this thread
/// (NVIDIA/nccl issue 744).
/// \return 0, or the exit status of the first process that failed; 1, with a
///   message, if a signal ended it
int runOwnProcesses(int ranks, std::ostream &err);

/// Holds an input that must be equal on all ranks. Each process reads files and
/// flags itself, possibly on different hosts. Ranks with different inputs would
/// hang, or silently train a wrong model.
struct StartPart {
  std::string what;    ///< "plan", "options", "data"
  std::string content; ///< the text that is compared
  /// This text describes the content in messages; it may be empty.
  std::string shown;
};

/// Divides the ranks by the content of their copy of one StartPart.
struct Sides {
  /// Lists the ranks with the most common content. In a tie, the content that
  /// the lowest rank has wins.
  std::vector<int> most;
  std::vector<int> others; ///< ascending
};

/// Compares a part over all ranks. Every rank must call this function.
Sides sidesOf(runtime::World &world, const StartPart &part);

/// Compares all parts. Every rank must call this function with the same parts.
/// \throws CommunicationError on all ranks, naming the ranks that differ from
///   the majority
void agreeOnStart(runtime::World &world, const std::vector<StartPart> &parts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RANKS_H

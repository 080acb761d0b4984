//===- launch.h - How this process was started ------------------*- C++ -*-===//
//
// Launchers tell their processes in variables of the environment which rank
// they are. Where several are there the innermost counts: torchrun inside an
// mpirun or srun, mpirun inside a Slurm allocation. docs/training.md lists what
// is read.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H
#define MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "runtime/communicator/communicator.h"
#include "runtime/communicator/tcp_meeting.h"

namespace mtplan::runtime {

/// What the environment says cannot be: which variable, what it is and what
/// would work.
struct LaunchError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// The value of a variable; none if there is no such, or it is empty.
using Environment =
    std::function<std::optional<std::string>(const std::string &name)>;
/// That of this process.
Environment ownEnvironment();

enum class Launcher { alone, torchrun, openMpi, mpich, slurm };
enum class Transport { threads, mpi, sockets };
/// Which MPI this program was built with.
enum class MpiBuild { none, openMpi, mpich };

struct Launch {
  Launcher by = Launcher::alone;
  /// threads if this process is the only one.
  Transport transport = Transport::threads;
  int rank = 0, ranks = 1;
  /// Among the ranks of this host, and how many they are; none: nothing says.
  std::optional<int> localRank, localRanks;
  /// Whether CUDA_VISIBLE_DEVICES says which devices this process sees: the
  /// launcher may show each rank others.
  bool choosesDevices = false;
  TcpStart start; ///< where they meet, if over sockets
};

/// \throws LaunchError
Launch readLaunch(const Environment &environment, MpiBuild mpi);

/// Which of the devices that this process sees is this rank's: they go to the
/// ranks of the host in order. One that was shown a single device has it.
/// \param shared  whether several ranks may have one device
/// \throws LaunchError if this host has fewer devices than ranks
int deviceOf(const Launch &launch, int visibleDevices, bool shared = false);

MpiBuild builtMpi();

/// Runs `body` on this process, one rank of several, over MPI or sockets. Call
/// once. If it fails the process ends with what it said, and so do the others.
/// A rank that has ended waits for the others as long as they take.
void runAsRank(const Launch &launch, const WorldOptions &options,
               const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H

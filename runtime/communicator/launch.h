//===- launch.h - The launcher's environment variables ----------*- C++ -*-===//
//
// Launchers tell their processes their rank in environment variables. If
// several launchers are nested, the innermost counts: torchrun inside mpirun or
// srun, mpirun inside a Slurm allocation. docs/training.md lists the variables.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H
#define MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "runtime/communicator/communicator.h"
#include "runtime/communicator/tcp_rendezvous.h"

namespace mtplan::runtime {

/// Reports an impossible environment: the variable, its value and what would
/// work.
struct LaunchError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Returns the value of a variable; none if it is unset or empty.
using Environment =
    std::function<std::optional<std::string>(const std::string &name)>;
/// Returns the environment of this process.
Environment ownEnvironment();

enum class Launcher { alone, torchrun, openMpi, mpich, slurm };
enum class Transport { threads, mpi, sockets };
/// Names the MPI that this program was built with.
enum class MpiBuild { none, openMpi, mpich };

struct Launch {
  Launcher by = Launcher::alone;
  /// `threads` if this process is the only one.
  Transport transport = Transport::threads;
  int rank = 0, ranks = 1;
  /// Rank within this host, and number of ranks on this host, if known.
  std::optional<int> localRank, localRanks;
  /// Whether CUDA_VISIBLE_DEVICES is set, with which a launcher may show each
  /// rank its own devices.
  bool choosesDevices = false;
  TcpStart start; ///< rendezvous over sockets
};

/// \throws LaunchError
Launch readLaunch(const Environment &environment, MpiBuild mpi);

/// Returns the tasks on node number `node`, counted from 0, of a list such as
/// "2(x3),1": three nodes with two tasks each, then one with one. None if the
/// list has no such node.
std::optional<int> tasksOfNode(const std::string &list, int node);

/// Returns the first host of a list such as "node[07-12,15],login": "node07".
/// Empty if the list is malformed.
std::string firstNode(const std::string &list);

/// Returns which visible device belongs to this rank. Devices are assigned to
/// the ranks of a host in order; a rank that sees a single device gets it.
/// \param shared  whether several ranks may use one device
/// \throws LaunchError if this host has fewer devices than ranks
int deviceOf(const Launch &launch, int visibleDevices, bool shared = false);

MpiBuild builtMpi();

/// Runs `body` on this process, one of the `ranks` of MPI_COMM_WORLD, like
/// runAsRank. Throws if this program was built without MPI.
void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body);

/// Runs `body` on this process, one rank of several, over MPI or sockets. Call
/// it once. If it fails, this process and all others end with the message. A
/// rank that has ended waits for the others without a limit.
void runAsRank(const Launch &launch, const WorldOptions &options,
               const std::function<void(World &)> &body);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H

//===- launch.h - The launcher's environment variables ----------*- C++ -*-===//
//
// Launchers set environment variables with the rank of each process. If
// launchers are nested (torchrun inside mpirun or srun, mpirun inside a Slurm
// allocation), the innermost launcher determines the rank. docs/training.md
// lists the variables.
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

/// Reports an invalid environment: the variable, its value and a valid value.
struct LaunchError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Maps a variable's name to its value, or to none if the variable is unset or
/// empty.
using Environment =
    std::function<std::optional<std::string>(const std::string &name)>;
Environment ownEnvironment();

enum class Launcher { alone, torchrun, openMpi, mpich, slurm };
enum class Transport { threads, mpi, sockets };
/// Names the MPI library that the program was built with.
enum class MpiBuild { none, openMpi, mpich };

struct Launch {
  Launcher by = Launcher::alone;
  /// Is `threads` if this is the only process.
  Transport transport = Transport::threads;
  int rank = 0, ranks = 1;
  /// Hold this process's rank within its host, and the number of ranks on the
  /// host, if known.
  std::optional<int> localRank, localRanks;
  /// Says whether CUDA_VISIBLE_DEVICES is set. If so, each rank may see only
  /// its own devices.
  bool choosesDevices = false;
  TcpStart start; ///< only for Transport::sockets
};

/// Returns the rank and the transport of this process.
/// \throws LaunchError if the variables are invalid or contradict each other
Launch readLaunch(const Environment &environment, MpiBuild mpi);

/// Returns the number of tasks on node `node`, counted from 0, of a Slurm list.
/// The list "2(x3),1" has three nodes with two tasks, then one node with one.
/// Returns none if the list has no such node.
std::optional<int> tasksOfNode(const std::string &list, int node);

/// Returns the first host of a Slurm list: "node07" for "node[07-12,15],login".
/// Returns "" if the list is malformed.
std::string firstNode(const std::string &list);

/// Returns the index of this rank's device among its visible devices. A single
/// visible device is this rank's own if `launch.choosesDevices` is set or the
/// number of ranks on the host is unknown. Otherwise, the ranks of a host use
/// its devices in order.
/// \param shared  whether several ranks may use one device
/// \throws LaunchError if this rank sees no device. If the ranks use devices in
/// order, also throws LaunchError if this rank's index within the host is
/// unknown or, without `shared`, if the host is known to have more ranks than
/// visible devices
int deviceOf(const Launch &launch, int visibleDevices, bool shared = false);

MpiBuild builtMpi();

/// Runs `body` as this process's rank in MPI_COMM_WORLD, which must have
/// `ranks` ranks. The behaviour is otherwise that of runAsRank.
/// \throws CommunicationError if this program was built without MPI
void runUnderMpi(int ranks, const WorldOptions &options,
                 const std::function<void(World &)> &body);

/// Runs `body` as this process's rank, over MPI or sockets. A process may call
/// this only once. After a failure, all processes print an error message and
/// exit. A rank that has finished waits for the others without a timeout.
void runAsRank(const Launch &launch, const WorldOptions &options,
               const std::function<void(World &)> &body);

/// Returns how many of the `ranks` of a run are on this host, or `ranks` if the
/// launcher does not say.
int ranksOfHost(const Launch &launch, int ranks);

/// Returns this rank's number of cores: the host's cores divided by its ranks,
/// at least one, and at most the cores of this process's affinity mask. Ranks
/// that are threads share the cores of their process.
int coresOfRank(const Launch &launch, int ranks);

/// Returns this rank's number of cores, from the hosts and processes of all
/// ranks. All ranks must call this together.
int coresOfRank(World &world);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_LAUNCH_H

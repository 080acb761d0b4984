//===- neighbours.h - Processes on this machine -----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_NEIGHBOURS_H
#define MTPLAN_RUNTIME_COMMUNICATOR_NEIGHBOURS_H

#include <vector>

#include <mpi.h>
#include <sys/types.h>

namespace mtplan::runtime {

/// The processes of a communicator that run on this machine.
class Neighbours {
public:
  /// Is collective.
  explicit Neighbours(MPI_Comm all);

  /// Returns whether the process of a rank has died; false for ranks of other
  /// machines.
  bool hasDied(int rank) const;

private:
  std::vector<pid_t> processes; ///< by rank; 0: on another machine
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_NEIGHBOURS_H

//===- neighbours.h - Ranks on this machine ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_NEIGHBOURS_H
#define MTPLAN_RUNTIME_COMMUNICATOR_NEIGHBOURS_H

#include <vector>

#include <mpi.h>
#include <sys/types.h>

namespace mtplan::runtime {

/// Of the processes of a communicator, those that this one can see.
class Neighbours {
public:
  /// Collective.
  explicit Neighbours(MPI_Comm all);

  /// Of a rank that cannot be seen nobody knows: false.
  bool hasDied(int rank) const;

private:
  std::vector<pid_t> processes; ///< by rank; 0: cannot be seen
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_NEIGHBOURS_H

//===- cores.h - Cores for each rank ----------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_CORES_H
#define MTPLAN_RUNTIME_COMMUNICATOR_CORES_H

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

/// How many ranks of a run of `ranks` are on this host, as the launcher says;
/// all of them if nothing says anything else.
int ranksOfHost(const Launch &launch, int ranks);

/// The cores of this host shared out among its ranks, but no more than this
/// process may use, which ranks that are threads of it share; at least one.
int coresOfRank(const Launch &launch, int ranks);

/// The same, as the ranks tell each other where they are: every rank calls it.
int coresOfRank(World &world);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_CORES_H

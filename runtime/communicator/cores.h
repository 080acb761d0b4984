//===- cores.h - Processor cores per rank -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_CORES_H
#define MTPLAN_RUNTIME_COMMUNICATOR_CORES_H

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

/// Returns how many of the `ranks` of a run are on this host: what the launcher
/// says, otherwise all.
int ranksOfHost(const Launch &launch, int ranks);

/// Returns the cores of this host divided by its ranks, at least one and at
/// most what this process may use. Ranks that are threads share the cores of
/// their process.
int coresOfRank(const Launch &launch, int ranks);

/// Returns the same from what ranks tell each other about their hosts. Every
/// rank must call it.
int coresOfRank(World &world);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_CORES_H

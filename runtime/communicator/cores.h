//===- cores.h - Processor cores per rank -----------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_COMMUNICATOR_CORES_H
#define MTPLAN_RUNTIME_COMMUNICATOR_CORES_H

#include "runtime/communicator/launch.h"

namespace mtplan::runtime {

/// Returns how many of the `ranks` of a run are on this host according to the
/// launcher, or all if it does not state this.
int ranksOfHost(const Launch &launch, int ranks);

/// Returns this rank's number of cores: those of the host divided by its ranks,
/// at least one, and at most those of this process's affinity mask. Ranks that
/// are threads share the cores of their process.
int coresOfRank(const Launch &launch, int ranks);

/// Returns the same number, but counts the ranks of this host by an all-gather
/// of host names, which every rank must call.
int coresOfRank(World &world);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_COMMUNICATOR_CORES_H

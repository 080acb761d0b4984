//===- collective_cost.h - Time of a collective on a topology ---*- C++ -*-===//
//
// An alpha-beta model over the levels of a machine's network ranks plans; it
// does not predict a profile. It leaves out the contention between collectives
// that run at once, and stragglers. Every function is pure, total over its
// stated domain, and returns 0 s for a group of one rank.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_COLLECTIVE_COST_H
#define MTPLAN_PLANNER_COST_COLLECTIVE_COST_H

#include "planner/graph/layout.h"
#include "planner/machine/machine.h"

namespace mtplan::planner {

/// One group of a mesh axis: the ranks r, r + stride, r + 2 stride, ... The
/// axis divides `ranks` into such groups; where groups do not align with a
/// level's domains, the group with the longest reach counts.
struct Group {
  int size = 1;   ///< >= 1
  int stride = 1; ///< >= 1, in ranks
  int ranks = 0;  ///< of the mesh; 0: a single group, from rank 0
};

/// Returns the time until the collective is done on every rank of the group,
/// with all groups of the axis running it at once.
/// \param kind     allReduce, reduceScatter, allGather or allToAll
/// \param payload  bytes one rank passes in: the whole tensor for allReduce and
/// reduceScatter, its shard for allGather, its slice for allToAll; >= 0
Seconds collectiveTime(StepKind kind, Bytes payload, Group group,
                       const Machine &machine);

/// Returns the time until `payload` has reached the rank `stride` ranks away,
/// with all ranks sending at once.
Seconds pointToPointTime(Bytes payload, int stride, const Machine &machine);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_COLLECTIVE_COST_H

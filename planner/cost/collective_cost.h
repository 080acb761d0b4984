//===- collective_cost.h - Time of a collective on a topology ---*- C++ -*-===//
//
// Prices collectives with an alpha-beta model over the levels of a machine's
// network. The model ignores stragglers and contention between concurrent
// collectives. A group of one rank takes 0 s.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_COLLECTIVE_COST_H
#define MTPLAN_PLANNER_COST_COLLECTIVE_COST_H

#include "planner/graph/layout.h"
#include "planner/machine/machine.h"

namespace mtplan::planner {

/// Describes a group of a mesh axis, which has the ranks r, r + stride, r + 2
/// stride, ... The mesh axis divides all `ranks` ranks into such groups. If
/// groups do not align with a level's domains, the group that touches the most
/// domains sets the price.
struct Group {
  int size = 1;   ///< >= 1
  int stride = 1; ///< >= 1, in ranks
  int ranks = 0;  ///< ranks of the mesh; 0: a single group, from rank 0
};

/// Returns the time until the collective is done on every rank of the group,
/// while all groups of the axis run it at once.
/// \param kind     allReduce, reduceScatter, allGather or allToAll
/// \param payload  the bytes of one rank's input, >= 0: the full tensor for
/// allReduce and reduceScatter, its shard for allGather and allToAll
Seconds collectiveTime(StepKind kind, Bytes payload, Group group,
                       const Machine &machine);

/// Returns the time until `payload` has reached the rank `stride` ranks away,
/// while all ranks send at once.
Seconds pointToPointTime(Bytes payload, int stride, const Machine &machine);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_COLLECTIVE_COST_H

//===- groups.h - Which ranks meet in a collective --------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_GRAPH_GROUPS_H
#define MTPLAN_PLANNER_GRAPH_GROUPS_H

#include <vector>

#include "planner/graph/layout.h"

namespace mtplan::planner {

/// The ranks of the mesh, cut into groups that differ along `axes` alone: every
/// rank is in one group. Members ascend, groups ascend by their first member.
/// \param axes  ascending, none twice; none: every rank on its own
std::vector<std::vector<int>> groupsOf(const Mesh &mesh,
                                       const std::vector<int> &axes);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_GROUPS_H

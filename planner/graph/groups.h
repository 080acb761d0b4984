//===- groups.h - The ranks of each collective's groups ---------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_GRAPH_GROUPS_H
#define MTPLAN_PLANNER_GRAPH_GROUPS_H

#include <vector>

#include "planner/graph/layout.h"

namespace mtplan::planner {

/// Divides the ranks of the mesh into groups that differ along `axes` alone, so
/// that every rank is in one group. Members ascend, groups ascend by their
/// first member.
/// \param axes  ascending, without repeats; if empty, every rank is on its own
std::vector<std::vector<int>> groupsOf(const Mesh &mesh,
                                       const std::vector<int> &axes);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_GROUPS_H

//===- workspace_limit.h - The workspace of a stage -------------*- C++ -*-===//
//
// The solver limits a sum of memory over its tables. A workspace is a maximum
// over program points, which such a sum cannot express. Therefore a fixed
// number of bytes is reserved for the workspace. If a solution needs more, the
// layouts that cause the excess are forbidden together, and the chain is solved
// again (a logic-based Benders cut: Hooker and Ottosson 2003).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_STAGE_WORKSPACE_LIMIT_H
#define MTPLAN_PLANNER_SEARCH_STAGE_WORKSPACE_LIMIT_H

#include <utility>
#include <vector>

#include "planner/search/segment/segment_problem.h"

namespace mtplan::planner {

/// Describes consecutive repeats of a segment that a stage holds.
struct HeldSegment {
  int segment = 0;
  const SegmentProblem *problem = nullptr;
  int repeats = 1;
};

/// Returns the bytes that any plan reserves for transient values: the inputs,
/// and twice the largest working set of an operator with its best split,
/// because one working set is in use while another is received.
double workspaceReserve(const ModelGraph &graph,
                        const std::vector<HeldSegment> &held,
                        const Setting &setting);

/// Lists values of variables of one link that no repeat may have together.
struct Forbidden {
  int link = 0;
  std::vector<std::pair<int, int>> values; ///< variable and value
};

/// Returns the values, in `assignment`, of all variables that determine the
/// layouts of `tensors`.
Forbidden forbiddenBy(const SegmentGraph &segment,
                      const SegmentProblem &problem, int link,
                      const Assignment &assignment,
                      const std::vector<int> &tensors);

/// Forbids the combination of the values. Adds at most one Boolean variable per
/// forbidden value, so that no table has more than three variables; a variable
/// is true if all forbidden values up to its own are chosen. The existing
/// variables keep their numbers.
/// \pre `problem` has costs for every table, and `forbidden.values` is not
/// empty
void forbid(Problem &problem, const Forbidden &forbidden);

/// Returns the bytes that every plan of a stage reserves for its workspace.
/// \param repeats  the number of repeats of each segment on the stage
Bytes workspaceReserveOf(const ModelGraph &graph, const Setting &setting,
                         const std::vector<int> &repeats);

/// Returns the number of table entries that an elimination of the link joins,
/// before illegal values are removed.
double eliminationWork(const Link &link);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_STAGE_WORKSPACE_LIMIT_H

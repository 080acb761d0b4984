//===- plan_check.h - Whether the layouts of a plan go together -*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PLAN_CHECK_H
#define MTPLAN_PLANNER_SEARCH_PLAN_CHECK_H

#include <string>
#include <vector>

#include "planner/search/segment_plan.h"

namespace mtplan::planner {

/// Every way in which runs, in chain order, contradict themselves or each
/// other, a sentence each that starts with the segment: a value that is read in
/// a layout that it is neither made in nor brought into; neighbours that do not
/// hand over what is taken; a tied parameter that is kept in two ways.
/// \param setting  gives the mesh
/// Complexity: linear in the plans.
std::vector<std::string> check(const ModelGraph &graph,
                               const std::vector<SegmentPlan> &plans,
                               const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PLAN_CHECK_H

//===- plan_check.h - Whether a plan's layouts are consistent ---*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_PLAN_CHECK_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_PLAN_CHECK_H

#include <string>
#include <vector>

#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

/// Returns every contradiction within or between runs in chain order, a
/// sentence each that starts with the segment: a value that is read in a layout
/// in which it is neither made nor converted; neighbours that disagree about a
/// boundary; a tied parameter that is stored in two ways. Complexity: linear in
/// the plans.
/// \param setting  gives the mesh
std::vector<std::string> check(const ModelGraph &graph,
                               const std::vector<SegmentPlan> &plans,
                               const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_PLAN_CHECK_H

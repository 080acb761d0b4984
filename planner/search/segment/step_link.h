//===- step_link.h - A segment with the costs of a step ---------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_STEP_LINK_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_STEP_LINK_H

#include <vector>

#include "planner/search/segment/segment_problem.h"

namespace mtplan::planner {

/// Returns a link of `repeats` repeats of the segment, with the costs of a
/// step.
/// \param all  the number of all repeats on the stage, which share some costs
Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int repeats, int all);

/// Returns a segment's problem with the costs of a step.
SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_STEP_LINK_H

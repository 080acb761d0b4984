//===- scaled_link.h - From one micro-batch to those of a step --*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_SCALED_LINK_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_SCALED_LINK_H

#include <vector>

#include "planner/search/segment/segment_problem.h"

namespace mtplan::planner {

/// Returns the link of `repeats` repeats, its numbers scaled from one
/// micro-batch to those of a step.
Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int repeats);

/// Builds a segment's problem and scales its link.
SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_SCALED_LINK_H

//===- kind_times.h - Compute of a run, by kind of operator -----*- C++ -*-===//
//
// PhaseParts::compute of forward and backward taken apart, for people who
// compare it with what a run has measured.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_KIND_TIMES_H
#define MTPLAN_PLANNER_SEARCH_KIND_TIMES_H

#include <map>
#include <string>

#include "planner/search/segment_plan.h"

namespace mtplan::planner {

/// By Op::kind, of one copy and micro-batch, recomputation included. What is
/// one instruction with the one that it follows is of that one's kind.
/// Gradients that are read back and added to are "accumulate".
std::map<std::string, Seconds> kindTimesOf(const ModelGraph &model,
                                           const SegmentPlan &plan,
                                           const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_KIND_TIMES_H

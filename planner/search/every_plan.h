//===- every_plan.h - Every plan of a small configuration -------*- C++ -*-===//
//
// The solvers minimise sums of times and reserve workspace before they solve.
// A simulated step is not a sum, so that a gap may remain between the fastest
// plan that they find and the bound. A configuration with few plans, such as
// one without tensor ranks, closes the gap by trying all.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H
#define MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H

#include <optional>

#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// Simulates every plan of the rejection's configuration with every layout
/// between stages, if there are few. Returns the fastest plan that fits and is
/// not slower than `slowest`; none if there is no such plan, or if there may be
/// too many plans. Raises the rejection's bound to what is known afterwards.
/// Complexity: exponential, with limits of the plans and of their tasks.
/// \param model  for any number of samples
std::optional<PlannedCandidate>
fastestOfAll(const ModelGraph &model, const SearchOptions &options,
             const Machine &machine, Seconds slowest, Rejection &rejection);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H

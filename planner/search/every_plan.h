//===- every_plan.h - Every plan of a small configuration -------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H
#define MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H

#include <optional>

#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// Simulates every plan of the rejection's configuration, with every layout
/// between stages. Since a simulated step is not a sum of times, the solvers
/// may leave a gap to the lower bound, which this search closes. Returns the
/// fastest plan that fits and is not slower than `slowest`, if any. Sets the
/// rejection's bound to that plan's step, or else to `slowest`. The number of
/// plans grows exponentially: if there may be too many, the call simulates none
/// and keeps the bound.
/// \param model  for any number of samples
std::optional<PlannedCandidate>
fastestOfAll(const ModelGraph &model, const SearchOptions &options,
             const Machine &machine, Seconds slowest, Rejection &rejection);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H

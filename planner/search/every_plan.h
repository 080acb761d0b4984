//===- every_plan.h - Every plan of a small configuration -------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H
#define MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H

#include <optional>

#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// Simulates every plan of the rejection's configuration, with every layout
/// between stages. A simulated step is not a sum of times, so the solvers may
/// leave a gap between the step and its lower bound. This search closes the
/// gap. Returns the fastest plan that fits and is not slower than `slowest`, if
/// there is one. Sets the rejection's bound to the step of that plan, or to
/// `slowest` if there is none. The number of plans grows exponentially. If
/// there may be too many, the call simulates no plan and keeps the bound.
/// \param model  the model, built for any number of samples
std::optional<PlannedCandidate>
fastestOfAll(const ModelGraph &model, const SearchOptions &options,
             const Machine &machine, Seconds slowest, Rejection &rejection);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_EVERY_PLAN_H

//===- given_plan.h - A plan from outside the search, priced ----*- C++ -*-===//
//
// Prices a plan that exists already, one read from a file or looked at again,
// exactly as the search prices the plans that it finds.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H
#define MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H

#include <vector>

#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// The runs of each virtual stage, in model order.
using PlannedParts = std::vector<std::vector<SegmentPlan>>;

/// Returns a plan's step as a problem for the simulator.
/// \param graph  scaled to one micro-batch of all replicas
StepProblem stepProblemOf(const ModelGraph &graph, const PlannedParts &parts,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps);

/// Returns what one rank of each stage holds. The workspace is reserved as the
/// search reserves it.
std::vector<MemoryUse> memoryByStage(const ModelGraph &graph,
                                     const PlannedParts &parts,
                                     const Setting &setting,
                                     const Parallelism &config);

/// Returns the plan as the search would have returned it. Its lower bound is
/// its own step, since no other plan is known.
PlannedCandidate priceGiven(const ModelGraph &graph,
                            const SearchOptions &options,
                            const Machine &machine, const Parallelism &config,
                            PlannedParts parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H

//===- given_plan.h - A plan from outside the search, priced ----*- C++ -*-===//
//
// Prices a given plan, such as a plan from a file, exactly as the search prices
// its plans.
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

/// Returns the memory use of one rank of each stage, including the workspace
/// that the search reserves.
std::vector<MemoryUse> memoryByStage(const ModelGraph &graph,
                                     const PlannedParts &parts,
                                     const Setting &setting,
                                     const Parallelism &config);

/// Returns the plan as the search would return it. The lower bound is the
/// plan's step, since no other plan is known.
PlannedCandidate priceGiven(const ModelGraph &graph,
                            const SearchOptions &options,
                            const Machine &machine, const Parallelism &config,
                            PlannedParts parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H

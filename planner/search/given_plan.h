//===- given_plan.h - A plan that somebody chose, priced --------*- C++ -*-===//
//
// What the search does with a plan that it found, for one that is there
// already: a plan read from a file, or looked at once more.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H
#define MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H

#include <vector>

#include "planner/search/search.h"

namespace mtplan::planner {

/// By part of the model, in model order: its runs.
using PlannedParts = std::vector<std::vector<SegmentPlan>>;

/// The step of a plan as a problem for the simulator.
/// \param graph  for one micro-batch of all replicas
StepProblem stepProblemOf(const ModelGraph &graph, const PlannedParts &parts,
                          const Setting &setting, const Parallelism &how,
                          const Overlaps &overlaps);

/// What one rank of each stage holds, with room for the workspace as the
/// search makes it.
std::vector<MemoryUse> memoryByStage(const ModelGraph &graph,
                                     const PlannedParts &parts,
                                     const Setting &setting,
                                     const Parallelism &how);

/// The plan as the search would have returned it. Nothing is known of others:
/// its bound is its own step.
PlannedCandidate priceGiven(const ModelGraph &graph,
                            const SearchOptions &options,
                            const Machine &machine, const Parallelism &how,
                            PlannedParts parts);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_GIVEN_PLAN_H

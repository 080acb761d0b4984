//===- solve_candidate.h - One configuration, solved exactly ----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H
#define MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H

#include <optional>
#include <vector>

#include "planner/search/bound/candidate_bounds.h"
#include "planner/search/planned_candidate.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/stage/stage_solver.h"

namespace mtplan::planner {

/// SolveLimits::points is kFewPoints where closing a gap gains little, and
/// kManyPoints where closing the gap is worth the time.
inline constexpr std::int64_t kFewPoints = 50'000, kManyPoints = 4'000'000;

/// Solves one configuration: solves every pipeline stage for each layout
/// between stages, and simulates the step. Returns nothing, with the reason in
/// `rejection`, if the configuration is pruned or has no legal plan.
/// \param graph  scaled to one micro-batch of all replicas
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &config,
               const CandidateBounds &bounds, SolveLimits limits,
               StageCache &cache, Rejection &rejection);

/// Solves one configuration with every layout between stages and no bounds.
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &config,
               SolveLimits limits, StageCache &cache, Rejection &rejection);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H

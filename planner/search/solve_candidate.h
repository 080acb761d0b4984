//===- solve_candidate.h - One configuration, solved exactly ----*- C++ -*-===//
//
// Finds the best strategies of one configuration: solves every pipeline stage
// for each layout between stages, and simulates the step. Also prices a given
// plan, such as a plan from a file, exactly as the search prices its plans.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H
#define MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H

#include <optional>
#include <vector>

#include "planner/search/bound/candidate_bounds.h"
#include "planner/search/price/price.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/stage/stage_solver.h"

namespace mtplan::planner {

/// Values of SolveLimits::points: where closing a gap gains little, and where a
/// gap is worth the time.
inline constexpr std::int64_t kFewPoints = 50'000, kManyPoints = 4'000'000;

/// The runs of each virtual stage, in model order.
using PlannedParts = std::vector<std::vector<SegmentPlan>>;

/// A configuration with its strategies.
struct PlannedCandidate {
  Parallelism config;
  PlannedParts parts;
  StepTime time; ///< times of the simulated step
  /// The memory of the stage that needs most on the device; `memory.host` is
  /// the maximum over the stages.
  MemoryUse memory;
  int fullestStage = 0;
  bool fits = false;
  Seconds lowerBound; ///< no plan of this configuration is faster
  bool optimal = false;
  /// Whether the strategies of every stage minimise the stage's sum of times.
  bool isLeastSum = false;
  /// Whether that sum is the step, because nothing overlaps.
  bool addsUp = false;

  /// Returns all runs in chain order.
  std::vector<SegmentPlan> plans() const;
};

/// Solves one configuration. Returns nothing, with the reason in `rejection`,
/// if the configuration is pruned or has no legal plan.
/// \param graph   scaled to one micro-batch of all replicas
/// \param limits  the cutoff, and the limit of points that may be created to
/// close the gap between plan and bound
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

#endif // MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H

//===- solve_candidate.h - One configuration, solved exactly ----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H
#define MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H

#include <optional>
#include <vector>

#include "planner/search/price/price.h"
#include "planner/search/space/enumerate.h"
#include "planner/search/stage/stage_solver.h"

namespace mtplan::planner {

/// A configuration with its strategies.
struct PlannedCandidate {
  Parallelism config;
  /// The runs of each virtual stage, in model order.
  std::vector<std::vector<SegmentPlan>> parts;
  StepTime time;    ///< of the simulated step
  MemoryUse memory; ///< of the stage that needs most
  int fullestStage = 0;
  bool fits = false;
  Seconds lowerBound; ///< no plan of this configuration is faster
  bool optimal = false;
  /// Whether every stage's strategies have the least sum of times.
  bool isLeastSum = false;

  /// Returns all runs in chain order.
  std::vector<SegmentPlan> plans() const;
};

/// One layout of all values between segments (Setting::boundary), and a lower
/// bound of the step with it.
struct BoundaryBound {
  std::optional<int> boundary;
  Seconds lowerBound;
};

/// The bounds of a configuration before it is solved.
struct CandidateBounds {
  std::vector<BoundaryBound> boundaries; ///< the layouts to try
  /// By stage: the step takes at least this plus all compute of the stage. It
  /// is the time to fill and drain the pipeline.
  std::vector<Seconds> fillDrain;
};

/// Returns the layouts that values between pipeline stages may have; without a
/// pipeline, the free choice alone.
std::vector<std::optional<int>> boundariesOf(const ModelGraph &graph,
                                             const Parallelism &config);

/// Solves one configuration. Returns nothing if it is pruned or nothing is
/// legal; `rejection` says which.
/// \param graph   scaled to one micro-batch of all replicas
/// \param limits  the cutoff, and how many points may close the gap of the
/// bound
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &config,
               const CandidateBounds &bounds, SolveLimits limits,
               StageCache &cache, Rejection &rejection);

/// Solves one configuration with every layout between stages.
std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &config,
               SolveLimits limits, StageCache &cache, Rejection &rejection);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SOLVE_CANDIDATE_H

//===- solved_stages.h - The step's bound by solved stages ------*- C++ -*-===//
//
// Raises the lower bound of a configuration's step after its stages are solved:
// their least compute includes what memory and the layout between stages cost.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SOLVED_STAGES_H
#define MTPLAN_PLANNER_SEARCH_SOLVED_STAGES_H

#include <vector>

#include "planner/search/bound/candidate_bounds.h"
#include "planner/search/stage/stage_solver.h"

namespace mtplan::planner {

/// Holds the solved stages of one layout between stages, if the traffic of
/// replicas is free (Setting::overlapWeight 0).
struct SolvedStages {
  const ModelGraph &graph; ///< scaled to one micro-batch of all replicas
  const Setting &setting;  ///< with the layout between stages
  const Parallelism &config;
  /// Lists, by stage, the virtual stages that it holds.
  const std::vector<std::vector<PipelinePart>> &held;
  StageCache &cache;
  const std::vector<Seconds> &compute; ///< by stage: the least of a step

  /// Raises `bound`, a lower bound of the step, unless it is within 0.01 % of
  /// `step`: by paths through the step (path_bound.h), by the last backward of
  /// a zero-bubble schedule, and by the least compute of each chunk.
  /// \param known  the layout's bounds before the stages were solved
  /// \param step   a plan's step or the cutoff; the result does not exceed the
  /// larger of `bound` and `step`
  Seconds raise(Seconds bound, const BoundaryBound &known, Seconds step,
                SolveLimits limits) const;

private:
  Seconds byLastBackward(const std::vector<StageBound> &bounds,
                         SolveLimits limits) const;
  LeastStep leastByChunk(LeastStep least) const;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SOLVED_STAGES_H

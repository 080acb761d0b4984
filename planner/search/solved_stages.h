//===- solved_stages.h - The step's bound by solved stages ------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SOLVED_STAGES_H
#define MTPLAN_PLANNER_SEARCH_SOLVED_STAGES_H

#include <vector>

#include "planner/search/bound/candidate_bounds.h"
#include "planner/search/stage/stage_solver.h"

namespace mtplan::planner {

/// Holds stages that were solved with one layout between stages, and without
/// the traffic between replicas, whose weights in Setting::sumWeights are 0.
/// `compute` includes the time that the memory limit and the layout between
/// stages add.
struct SolvedStages {
  const ModelGraph &graph; ///< scaled to one micro-batch of all replicas
  const Setting &setting;  ///< with the layout between stages
  const Parallelism &config;
  const std::vector<std::vector<PipelinePart>> &held; ///< by stage
  StageCache &cache;
  const std::vector<Seconds> &compute; ///< by stage: least compute of a step

  /// Returns a lower bound of the step that is at least `bound`, another lower
  /// bound. The call also computes bounds by paths through the step
  /// (path_bound.h), by the last backward of a zero-bubble schedule, and by the
  /// least compute of each chunk. A bound within 0.01 % of `step` is not raised
  /// further.
  /// \param known  the bounds for the same layout before the stages were solved
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

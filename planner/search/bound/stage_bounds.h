//===- stage_bounds.h - Lower bounds of a step by one stage -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_STAGE_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_STAGE_BOUNDS_H

#include <algorithm>
#include <vector>

#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Holds lower bounds of a step by the compute C of one stage: the step takes
/// at least C plus the time `fillDrain` to fill and drain the pipeline, and at
/// least fixed + share * C for each of `parts`.
struct StageBound {
  Seconds fillDrain;
  struct Part {
    double share = 0.0;
    Seconds fixed;
    /// Says whether `fixed` includes one micro-batch, forward and backward, of
    /// every other stage.
    bool passesAll = false;
  };
  std::vector<Part> parts;
  /// Bounds a zero-bubble schedule, if `weightsShare` is positive: the step
  /// takes at least `fixed` + C, where C counts the gradients of weights for
  /// only `weightsShare` of the micro-batches. `fixed` includes one
  /// micro-batch, forward and backward, of stage 0.
  struct LastBackward {
    double weightsShare = 0.0; ///< share of the micro-batches
    Seconds fixed;
  } lastBackward;
  /// Holds the least compute of one micro-batch, which the bounds of other
  /// stages include.
  Seconds microBatch;

  /// \param longer  by how much one micro-batch exceeds the sum of `microBatch`
  /// in all other stages together
  Seconds ofWork(Seconds compute, Seconds longer = {}) const {
    Seconds bound = fillDrain + compute;
    for (const Part &part : parts)
      bound = std::max(bound, part.fixed + part.share * compute +
                                  (part.passesAll ? longer : Seconds{}));
    return bound;
  }

  /// Returns the bound for a stage whose C + weight * T is at least `sum`. T is
  /// the time of the traffic that may overlap compute, and of the updates.
  /// \param sequential  the share of C and T that cannot overlap
  Seconds ofSum(Seconds sum, double weight, double sequential) const;
};

/// Returns a lower bound of the step from the compute of every stage.
/// \param compute  by stage: the least compute of a step
Seconds ofAllStages(const std::vector<StageBound> &bounds,
                    const std::vector<Seconds> &compute, double microBatches);

/// Returns the share of a stage's compute, and of its traffic of parameters and
/// gradients, that run one after the other in every plan.
double shareWithoutTraffic(const SearchOptions &options,
                           const Parallelism &config);

/// Returns the bounds of each stage, in O(stages).
///
/// One bound comes from fill and drain. The first forward passes the previous
/// stages before the stage begins. The stage's reductions and update follow its
/// compute. The last backward passes the previous stages, which have their own
/// reductions and update; a zero-bubble schedule may postpone parts of that
/// backward.
///
/// If every stage has one chunk, another bound comes from the first backward,
/// which begins after micro-batch 0 has passed all stages forward and the later
/// stages backward. Until then, the stage runs its own forward of micro-batch
/// 0, which counts in its compute, and at most the forwards of its warm-up. All
/// its other compute follows. In one micro-batch, the forward takes at most
/// the stage's compute minus the least time of the backward.
/// addZeroBubbleBounds() adds this bound for a zero-bubble schedule.
/// \param problem  lower bounds of every plan's times
std::vector<StageBound> stageBounds(const StepProblem &problem);

/// Adds the bounds by the first and by the last backward of a zero-bubble
/// schedule, in O(stages).
///
/// Until its last backward ends, stage s runs all its compute except the
/// gradients of weights of s + 1 micro-batches. The last backwards of the
/// previous stages follow, then the gradients of weights, the reductions and
/// the update of stage 0. In one micro-batch, the gradients of weights take at
/// most the stage's compute minus the least times of the forward and of the
/// gradients of inputs.
/// \param problem  least times, with backward as the sum of its two parts
void addZeroBubbleBounds(const StepProblem &problem,
                         std::vector<StageBound> &bounds);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_STAGE_BOUNDS_H

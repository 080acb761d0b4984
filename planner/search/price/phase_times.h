//===- phase_times.h - Times of one repeat, by phase ------------*- C++ -*-===//
//
// The numbers that a simulated step is made of. Collectives that move
// parameters or gradients between replicas are kept apart, because they can
// overlap compute. All others run between two operators and belong to the
// phase.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H
#define MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H

#include <map>
#include <string>
#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

/// The time of one phase, by cause.
struct PhaseParts {
  Seconds compute;         ///< operators
  Seconds local;           ///< slices and masks
  Seconds tensor, context; ///< collectives by the axis's role
  Seconds exchange;        ///< of samples between replicas: expert parallelism
  Seconds total() const {
    return compute + local + tensor + context + exchange;
  }
};

/// Times of one repeat, per micro-batch unless a comment says otherwise.
struct PhaseTimes {
  PhaseParts forward, backward;
  Seconds weightGradient; ///< the part of backward that only accumulators need
  Seconds gatherForward, gatherBackward; ///< of parameters, over replicas
  Seconds reduce;     ///< of gradients, over replicas, each micro-batch
  Seconds reduceStep; ///< of gradients, once a step
  Seconds gatherStep; ///< of parameters, once a step
  Seconds update;     ///< AdamW on the device, once a step, with `squares`
  Seconds squares;    ///< the gradient norm's part of `update`
  HostTimes host;     ///< the offloaded part of the update, once a step
};

/// Returns the time of operator `o`, executed once.
Seconds operatorTime(const SegmentGraph &segment, const SegmentPlan &plan,
                     std::size_t o, const OpRun &run, const Setting &setting);

/// Returns the times of one repeat of `plan`.
/// \param paid  by parameter: shared parameters that an earlier run has reduced
/// and updated; the call adds this run's
PhaseTimes phaseTimesOf(const ModelGraph &model, const SegmentPlan &plan,
                        const Setting &setting, std::vector<bool> &paid);

/// Returns compute times by Op::kind of one repeat and micro-batch,
/// recomputation included. A fused consumer counts as its producer's kind;
/// adding to gradient accumulators counts as "accumulate".
std::map<std::string, Seconds> kindTimesOf(const ModelGraph &model,
                                           const SegmentPlan &plan,
                                           const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H

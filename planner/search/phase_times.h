//===- phase_times.h - What one copy takes, by phase ------------*- C++ -*-===//
//
// The numbers a simulated step is made of. Collectives between replicas that
// move parameters or gradients are kept apart: they can run beside compute.
// All others stand between two operators and are part of the phase.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PHASE_TIMES_H
#define MTPLAN_PLANNER_SEARCH_PHASE_TIMES_H

#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/segment_plan.h"

namespace mtplan::planner {

/// Where the time of a phase goes.
struct PhaseParts {
  Seconds compute;         ///< operators
  Seconds local;           ///< slices and masks
  Seconds tensor, context; ///< collectives by the axis's role
  Seconds exchange;        ///< of samples among replicas: experts
  Seconds total() const {
    return compute + local + tensor + context + exchange;
  }
};

/// Of one copy; per micro-batch unless said otherwise.
struct PhaseTimes {
  PhaseParts forward, backward;
  Seconds weightGradient; ///< part of backward that only accumulators wait for
  Seconds gatherForward, gatherBackward; ///< of parameters, over replicas
  Seconds reduce;     ///< of gradients, over replicas, each micro-batch
  Seconds reduceStep; ///< of gradients, once a step
  Seconds gatherStep; ///< of parameters, once a step
  Seconds update;     ///< AdamW on the device, once a step, with the squares
  Seconds squares;    ///< of that: for the norm of gradients
  HostTimes host;     ///< what is offloaded of it, once a step
};

/// Of operator `o`, once.
Seconds operatorTime(const SegmentGraph &segment, const SegmentPlan &plan,
                     std::size_t o, const OpRun &run, const Setting &setting);

/// \param paid  by parameter: shared ones that an earlier run has reduced and
///              updated; those of this run are added
PhaseTimes phaseTimesOf(const ModelGraph &model, const SegmentPlan &plan,
                        const Setting &setting, std::vector<bool> &paid);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PHASE_TIMES_H

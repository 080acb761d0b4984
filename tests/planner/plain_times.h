//===- plain_times.h - Times without fusion and overlap ---------*- C++ -*-===//

#ifndef MTPLAN_TESTS_PLANNER_PLAIN_TIMES_H
#define MTPLAN_TESTS_PLANNER_PLAIN_TIMES_H

#include <vector>

#include "planner/cost/compute_cost.h"
#include "planner/search/price/phase_times.h"

namespace mtplan::planner {

/// Returns the time of an operator that is neither fused nor batched.
inline Seconds computeTime(const Op &op, const Strategy &strategy,
                           const std::vector<Tensor> &tensors, const Mesh &mesh,
                           const Machine &machine, const Software &software,
                           Precision precision) {
  OpRun alone;
  alone.precision = precision;
  return computeTime(op, alone, strategy, tensors, mesh, machine, software);
}

/// Returns a lower bound of the operator's time over all strategies on `ranks`
/// ranks, if it is neither fused nor batched.
inline Seconds computeLowerBound(const Op &op,
                                 const std::vector<Tensor> &tensors, int ranks,
                                 const Machine &machine,
                                 const Software &software,
                                 Precision precision) {
  OpRun alone;
  alone.precision = precision;
  return computeLowerBound(op, alone, tensors, ranks, machine, software);
}

/// Returns the times of all streams and, as `step`, their sum, as if nothing
/// overlapped. The stage solver minimises this sum.
inline StepTime stepTimeOf(const ModelGraph &model,
                           const std::vector<SegmentPlan> &plans,
                           const Setting &setting) {
  StepTime time;
  std::vector<bool> paid(model.parameters.size(), false);
  for (const SegmentPlan &plan : plans) {
    PhaseTimes phases = phaseTimesOf(model, plan, setting, paid);
    double repeats = plan.count;
    double times = repeats * static_cast<double>(setting.microBatches);
    time.add(phases, times);
    time.data +=
        (phases.gatherForward + phases.gatherBackward + phases.reduce) * times +
        (phases.reduceStep + phases.gatherStep) * repeats;
    time.update += phases.update * repeats;
    time.host += phases.host.total() * repeats;
  }
  time.step = time.compute + time.local + time.tensor + time.context +
              time.exchange + time.data + time.update + time.host;
  return time;
}

} // namespace mtplan::planner

#endif // MTPLAN_TESTS_PLANNER_PLAIN_TIMES_H

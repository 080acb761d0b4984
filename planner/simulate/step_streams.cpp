//===- step_streams.cpp - A step's tasks on their streams -----------------===//

#include "planner/simulate/step_streams.h"

namespace mtplan::planner {

StepStreams::StepStreams(const StepProblem &theProblem, StepGraph &theResult,
                         bool theDescribe)
    : problem(theProblem), result(theResult), describe(theDescribe) {
  for (int role = 0; role < kStreams; ++role)
    onCompute[role] = isOnCompute(StepRole(role));
  begin.push_back(0);
  for (const StageTimes &stage : problem.stages)
    for (const ChunkTimes &times : stage.chunks) {
      SegmentTimes sum;
      for (const SliceTimes &slice : times.slices) {
        SegmentTimes one{slice.forward, slice.backward, slice.weightGradient,
                         slice.gather, slice.reduce};
        if (problem.shape.kind == ScheduleKind::zeroBubble)
          one.backward = one.backward - one.weightGradient;
        segments.insert(segments.end(), slice.count, one);
        sum.forward += slice.count * one.forward;
        sum.backward += slice.count * one.backward;
        sum.weightGradient += slice.count * one.weightGradient;
        sum.gather += slice.count * one.gather;
        sum.reduce += slice.count * one.reduce;
      }
      chunks.push_back(sum);
      begin.push_back(int(segments.size()));
    }
}

int StepStreams::add(StepRole role, int stage, Seconds duration,
                     std::span<const int> dependencies, int chunk,
                     int microBatch, int segment) {
  bool compute = onCompute[int(role)];
  // All-gathers and reductions use one communicator, so they queue together.
  StepRole queue = role == StepRole::gather ? StepRole::reduce : role;
  int stream = stage * kStreams + (compute ? 0 : int(queue));
  if (describe)
    result.tasks.push_back({role, compute, stage, chunk, microBatch, segment});
  return result.graph.add(stream, duration, dependencies, linkOf(role, stage));
}

bool StepStreams::isOnCompute(StepRole role) const {
  const Overlaps &overlap = problem.overlap;
  switch (role) {
  case StepRole::forward:
  case StepRole::backward:
  case StepRole::weightGradient:
  case StepRole::update:
    return true;
  case StepRole::sendForward:
  case StepRole::sendBackward:
    return !overlap.pointToPoint;
  case StepRole::gather:
    return !overlap.gather;
  case StepRole::reduce:
    return !overlap.reduce;
  case StepRole::tied:
  case StepRole::norm:
    return false;
  case StepRole::down:
    return !overlap.down;
  case StepRole::hostUpdate:
    return !overlap.hostUpdate;
  case StepRole::up:
    return !overlap.up;
  }
  return true;
}

int StepStreams::linkOf(StepRole role, int stage) const {
  const StageLinks &links = problem.stages[stage].links;
  switch (role) {
  case StepRole::sendForward:
    return links.sendForward;
  case StepRole::sendBackward:
    return links.sendBackward;
  case StepRole::gather:
  case StepRole::reduce:
    return links.data;
  case StepRole::tied:
    return problem.tiedLink;
  case StepRole::down:
  case StepRole::up:
    return links.host;
  default:
    return kNoLink;
  }
}

} // namespace mtplan::planner

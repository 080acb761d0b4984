//===- step_bound.cpp - A lower bound of a simulated step -----------------===//

#include "planner/simulate/step_bound.h"

#include <algorithm>

namespace mtplan::planner {
namespace {

/// One virtual stage, one micro-batch.
struct PartTimes {
  /// Backward without weightGradient.
  Seconds forward, backward, weightGradient;
  Seconds sendForward, sendBackward; ///< 0 where nothing is sent
};

std::vector<PartTimes> partTimes(const StepProblem &problem) {
  int stages = problem.shape.stages;
  int parts = stages * problem.shape.chunks;
  bool split = problem.shape.kind == ScheduleKind::zeroBubble;
  std::vector<PartTimes> all(parts);
  for (int part = 0; part < parts; ++part) {
    const ChunkTimes &chunk =
        problem.stages[part % stages].chunks[part / stages];
    PartTimes &times = all[part];
    for (const SliceTimes &slice : chunk.slices) {
      times.forward += slice.count * slice.forward;
      times.backward += slice.count * slice.backward;
      if (split)
        times.weightGradient += slice.count * slice.weightGradient;
    }
    times.backward = times.backward - times.weightGradient;
    if (stages > 1 && part + 1 < parts)
      times.sendForward = chunk.sendForward;
    if (stages > 1 && part > 0)
      times.sendBackward = chunk.sendBackward;
  }
  return all;
}

/// Returns a stage's work before its first backward: forwards, which go through
/// the chunks in groups of one micro-batch per stage.
Seconds beforeFirstBackward(const StepProblem &problem,
                            const std::vector<PartTimes> &parts, int stage) {
  const ScheduleShape &shape = problem.shape;
  int forwards =
      std::min(warmUp(shape, stage) + 1, shape.microBatches * shape.chunks);
  int group = shape.stages * shape.chunks;
  Seconds sum;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const PartTimes &times = parts[chunk * shape.stages + stage];
    int count =
        forwards / group * shape.stages +
        std::clamp(forwards % group - chunk * shape.stages, 0, shape.stages);
    sum += count * times.forward;
    if (!problem.overlap.pointToPoint)
      sum += count * times.sendForward;
  }
  return sum;
}

} // namespace

Seconds stepLowerBound(const StepProblem &problem) {
  const ScheduleShape &shape = problem.shape;
  std::vector<PartTimes> parts = partTimes(problem);
  int stages = shape.stages;

  // One micro-batch's whole forward, and from there back to each part.
  Seconds allForward;
  for (const PartTimes &part : parts)
    allForward += part.forward + part.sendForward;
  std::vector<Seconds> backTo(parts.size()); // before the part's own backward
  Seconds back = allForward;
  for (std::size_t part = parts.size(); part-- > 0;) {
    backTo[part] = back;
    back += parts[part].backward + parts[part].sendBackward;
  }

  std::vector<Seconds> inputAt(stages); // before the stage's first forward
  for (int stage = 1; stage < stages; ++stage)
    inputAt[stage] = inputAt[stage - 1] + parts[stage - 1].forward +
                     parts[stage - 1].sendForward;

  // From the last stage to the first, the earliest end of the last backward of
  // the stage's first chunk. Backwards of every micro-batch pass the first
  // chunks of all stages in this order.
  Seconds step, lastBackward;
  for (int stage = stages; stage-- > 0;) {
    Seconds work, weights;
    for (std::size_t part = stage; part < parts.size(); part += stages) {
      const PartTimes &times = parts[part];
      Seconds sends;
      if (!problem.overlap.pointToPoint)
        sends = times.sendForward + times.sendBackward;
      weights += times.weightGradient;
      work += shape.microBatches *
              (times.forward + times.backward + times.weightGradient + sends);
    }
    // Weight gradients after the last backward, and their send, do not delay
    // it.
    int late = std::min(shape.microBatches, stage + 1);
    Seconds after = late * weights;
    if (!problem.overlap.pointToPoint)
      after += parts[stage].sendBackward;
    // All work follows the first forward; the work after warm-up also follows
    // the first backward, which is of the last chunk.
    Seconds start = std::max(inputAt[stage],
                             backTo[parts.size() - stages + stage] -
                                 beforeFirstBackward(problem, parts, stage));
    Seconds end =
        std::max(start + work - after, lastBackward + parts[stage].backward);
    end = std::max(end, backTo[stage] + parts[stage].backward);
    step = std::max(step, end + after + problem.stages[stage].update);
    lastBackward = end + parts[stage].sendBackward;
  }
  return step;
}

} // namespace mtplan::planner

//===- stage_bounds.cpp - Lower bounds of a step by one stage -------------===//

#include "planner/search/bound/stage_bounds.h"

#include <optional>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

Seconds forwardOf(const StageTimes &stage) {
  Seconds time;
  for (const SliceTimes &slice : stage.chunks.front().slices)
    time += slice.count * slice.forward;
  return time;
}

Seconds backwardOf(const StageTimes &stage, bool weightGradients) {
  Seconds time;
  for (const SliceTimes &slice : stage.chunks.front().slices)
    time +=
        slice.count * (weightGradients ? slice.backward
                                       : slice.backward - slice.weightGradient);
  return time;
}

// Returns the time of a stage's all-gathers before its first forward, or of its
// reductions after its last backward, that cannot overlap compute. If the
// collectives overlap, this is the time of the first chunk's first segment;
// otherwise it is the time of the first chunk or, if the collectives run once a
// step, of all chunks.
Seconds exposedTraffic(const StageTimes &stage, Seconds SliceTimes::*traffic,
                       bool overlaps, bool isOnceAStep) {
  Seconds time;
  for (const ChunkTimes &chunk : stage.chunks) {
    for (const SliceTimes &slice : chunk.slices) {
      if (overlaps && slice.count > 0)
        return slice.*traffic;
      time += slice.count * (slice.*traffic);
    }
    if (overlaps || !isOnceAStep)
      break;
  }
  return time;
}

Seconds exposedGather(const StageTimes &stage, const StepProblem &problem) {
  return exposedTraffic(stage, &SliceTimes::gather, problem.overlap.gather,
                        problem.gather == GatherRule::beforeStep);
}

// Returns the time of the reductions and the update that must follow all
// compute of a stage. With one chunk, all of the host's work counts; with
// several, only work of the host that does not overlap.
// \param send  a send that follows on the compute stream; 0 for stage 0
Seconds afterCompute(const StepProblem &problem, std::size_t index,
                     Seconds send) {
  const StageTimes &stage = problem.stages[index];
  const Overlaps &overlaps = problem.overlap;
  Seconds onHost, sequential = stage.update;
  for (const ChunkTimes &chunk : stage.chunks) {
    onHost += chunk.down + chunk.hostUpdate + chunk.up;
    sequential += overlaps.down ? Seconds{} : chunk.down;
    sequential += overlaps.hostUpdate ? Seconds{} : chunk.hostUpdate;
    sequential += overlaps.up ? Seconds{} : chunk.up;
  }
  const bool isOnceAStep = problem.reduce == ReduceRule::onceAStep;
  Seconds reduce =
      exposedTraffic(stage, &SliceTimes::reduce, overlaps.reduce, isOnceAStep);
  // The tied gradient of stage 0 is complete at the end of its compute.
  const Seconds tied =
      index == 0 && problem.stages.size() > 1 ? problem.tied : Seconds{};
  const bool isOneChunk = stage.chunks.size() == 1;
  if (isOneChunk)
    reduce += tied;
  // A reduction that runs once a step follows the send if both run on compute.
  const bool afterSend = !overlaps.reduce && isOnceAStep && reduce > Seconds{};
  const Seconds reduced = reduce + (afterSend ? send : Seconds{});
  const Seconds end =
      (overlaps.reduce ? std::max(reduce, send) : reduce + send) + sequential;
  if (isOneChunk)
    return std::max(end, reduced + onHost);
  // The tied chunk's gradients, if they are reduced, are reduced last.
  const bool isReduced = std::ranges::any_of(
      stage.chunks.front().slices,
      [](const SliceTimes &one) { return one.count * one.reduce > Seconds{}; });
  const Seconds byTied = (isReduced ? reduce : Seconds{}) + tied + stage.update;
  // The host may work for one chunk while another chunk's gradients are
  // reduced.
  return std::max(byTied, overlaps.reduce ? std::max(reduced + stage.update,
                                                     send + sequential)
                                          : end);
}

// Returns the time of all sends of a stage, if they run on its compute stream.
Seconds exposedSends(const StepProblem &problem, std::size_t stage) {
  if (problem.overlap.pointToPoint || problem.stages.size() == 1)
    return {};
  const std::vector<ChunkTimes> &chunks = problem.stages[stage].chunks;
  const bool isFirst = stage == 0, isLast = stage + 1 == problem.stages.size();
  Seconds time;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    if (!isLast || chunk + 1 < chunks.size())
      time += chunks[chunk].sendForward;
    if (!isFirst || chunk > 0)
      time += chunks[chunk].sendBackward;
  }
  return problem.shape.microBatches * time;
}

/// Computes the time until the first backward of each stage may begin.
class FirstBackward {
public:
  /// \param weightGradients  whether a backward includes them
  FirstBackward(const StepProblem &theProblem, bool weightGradients)
      : problem(theProblem), back(problem.stages.size() + 1) {
    const std::vector<StageTimes> &stages = problem.stages;
    for (std::size_t s = stages.size(); s-- > 0;) {
      all += forwardOf(stages[s]);
      if (s + 1 < stages.size())
        all += stages[s].chunks.front().sendForward;
      back[s] = back[s + 1] + backwardOf(stages[s], weightGradients) +
                stages[s].chunks.front().sendBackward;
    }
  }

  // Returns the bound of a stage without the time that follows its compute.
  StageBound::Part partOf(std::size_t stage) const {
    const StageTimes &own = problem.stages[stage];
    const double microBatches = problem.shape.microBatches;
    const double ahead = std::min<double>(
        warmUp(problem.shape, static_cast<int>(stage)), microBatches - 1);
    return {1.0 - ahead / microBatches, all - forwardOf(own) + back[stage + 1] +
                                            ahead * backwardOf(own, true)};
  }

private:
  const StepProblem &problem;
  Seconds all;               ///< micro-batch 0 through all stages forward
  std::vector<Seconds> back; ///< by stage s: backward through s and later ones
};

} // namespace

// The step takes at least c C + F: by fill and drain, c is 1 and F is
// fillDrain; by one of `parts`, they are its `share` and `fixed`. The step also
// takes at least T, and at least sequential * (C + T). Both have the form s C +
// t T. So every weighted mean of the first bound and one of the other two is a
// bound. The weight of the other bound, `share`, is chosen so that the mean is
// a (C + weight * T) + (1 - share) F for some number a.
Seconds StageBound::ofSum(Seconds sum, double weight, double sequential) const {
  const auto mean = [&](double c, Seconds f, double s, double t) {
    const double share = weight * c / (t + weight * (c - s));
    return (share * s + (1.0 - share) * c) * sum + (1.0 - share) * f;
  };
  const auto best = [&](double c, Seconds f) {
    const Seconds byTraffic = mean(c, f, 0.0, 1.0);
    return sequential > 0.0
               ? std::max(byTraffic, mean(c, f, sequential, sequential))
               : byTraffic;
  };
  Seconds bound = best(1.0, fillDrain);
  for (const Part &part : parts)
    bound = std::max(bound, best(part.share, part.fixed));
  return bound;
}

// All-gathers once a step overlap at most the first forward of each chunk, and
// reductions the last backward of each chunk. With several chunks, groups of
// one micro-batch per stage pass the chunks in turn, so that a whole group runs
// between the first forwards, or the last backwards, of two chunks.
double shareWithoutTraffic(const SearchOptions &options,
                           const Parallelism &config) {
  if (!hidesReplicaTraffic(options, config))
    return 1.0;
  if (config.zeroStage >= 2)
    return 0.0;
  const double overlapped = config.virtualStages > 1 ? config.pp : 1;
  return 1.0 - overlapped / static_cast<double>(config.microBatches());
}

Seconds ofAllStages(const std::vector<StageBound> &bounds,
                    const std::vector<Seconds> &compute, double microBatches) {
  Seconds longer;
  auto longerIn = [&](std::size_t stage) {
    return std::max(compute[stage] / microBatches - bounds[stage].microBatch,
                    Seconds{});
  };
  for (std::size_t stage = 0; stage < bounds.size(); ++stage)
    longer += longerIn(stage);
  Seconds most;
  for (std::size_t stage = 0; stage < bounds.size(); ++stage)
    most = std::max(
        most, bounds[stage].ofWork(compute[stage], longer - longerIn(stage)));
  return most;
}

std::vector<StageBound> stageBounds(const StepProblem &problem) {
  const bool postponesBackward = problem.shape.kind == ScheduleKind::zeroBubble;
  const bool passesStagesOnce = !postponesBackward &&
                                problem.shape.chunks == 1 &&
                                problem.stages.size() > 1;
  const bool sendsOverlap = problem.overlap.pointToPoint;
  std::optional<FirstBackward> firstBackward;
  if (passesStagesOnce)
    firstBackward.emplace(problem, true);
  std::vector<StageBound> bounds;
  // `fill` is the earliest time at which the stage has its first input. `drain`
  // is the time from the start of the previous stage's last backward to the end
  // of the step. `through` is the part of `drain` in which that backward passes
  // all previous stages.
  Seconds fill, drain, through;
  for (const StageTimes &stage : problem.stages) {
    const ChunkTimes &first = stage.chunks.front();
    const Seconds start = std::max(fill, exposedGather(stage, problem));
    const std::size_t index = bounds.size();
    const Seconds sends = exposedSends(problem, index);
    // A zero-bubble schedule ends a stage's compute with gradients of weights,
    // so that neither a send nor the previous stage's last backward follows.
    Seconds send;
    if (!postponesBackward && index > 0)
      send = first.sendBackward;
    // The stage's own sends count in `sends` if they run on compute.
    const Seconds counted = sendsOverlap ? Seconds{} : send;
    const Seconds after =
        afterCompute(problem, index, sendsOverlap ? Seconds{} : send);
    const Seconds end = std::max(after, send + drain) - counted;
    const Seconds allEnd = index > 0 ? send + through - counted : end;
    StageBound &bound = bounds.emplace_back();
    bound.fillDrain = start + sends + end;
    bound.microBatch = forwardOf(stage) + backwardOf(stage, true);
    if (firstBackward) {
      StageBound::Part part = firstBackward->partOf(index);
      // The sends of the warm-up and of micro-batch 0 run on compute, too, and
      // may come before the first backward.
      if (!sendsOverlap) {
        const double before =
            std::min<double>(warmUp(problem.shape, static_cast<int>(index)) + 1,
                             problem.shape.microBatches);
        const bool isLast = index + 1 == problem.stages.size();
        part.fixed += sends - (isLast ? Seconds{} : before * first.sendForward);
      }
      bound.parts.push_back({part.share, part.fixed + end});
      bound.parts.push_back({part.share, part.fixed + allEnd, true});
    }
    fill = start + forwardOf(stage) + first.sendForward;
    if (!postponesBackward) {
      drain = backwardOf(stage, true) + end + counted;
      through = backwardOf(stage, true) + allEnd + counted;
    }
  }
  return bounds;
}

void addZeroBubbleBounds(const StepProblem &problem,
                         std::vector<StageBound> &bounds) {
  const std::vector<StageTimes> &stages = problem.stages;
  const double microBatches = problem.shape.microBatches;
  const FirstBackward firstBackward(problem, false);
  Seconds fill, drain; // as in stageBounds()
  Seconds forwards;    // as `fill`, but with the all-gathers of stage 0 alone
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const ChunkTimes &own = stages[s].chunks.front();
    const Seconds forward = forwardOf(stages[s]);
    const Seconds inputGradient = backwardOf(stages[s], false);
    bounds[s].microBatch = forward + backwardOf(stages[s], true);
    StageBound::Part part = firstBackward.partOf(s);
    part.fixed += afterCompute(problem, s, {});
    bounds[s].parts.push_back(part);

    const Seconds start = std::max(fill, exposedGather(stages[s], problem));
    const double left = static_cast<double>(s) + 1.0;
    const Seconds send = problem.overlap.pointToPoint
                             ? own.sendBackward
                             : exposedSends(problem, s);
    if (s > 0 && left < microBatches) {
      const double share = 1.0 - left / microBatches;
      bounds[s].lastBackward = {share, forwards + send + drain};
      bounds[s].parts.push_back(
          {share, start + left * (forward + inputGradient) + send + drain});
    }
    fill = start + forward + own.sendForward;
    forwards += (s == 0 ? start : Seconds{}) + forward + own.sendForward;
    if (s == 0)
      drain = backwardOf(stages[s], true) + afterCompute(problem, s, {});
    else
      drain += inputGradient + own.sendBackward;
  }
}

} // namespace mtplan::planner

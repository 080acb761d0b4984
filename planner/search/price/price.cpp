//===- price.cpp - The simulated step of a plan ---------------------------===//

#include "planner/search/price/price.h"

#include <algorithm>
#include <numeric>

#include "planner/cost/collective_cost.h"
#include "planner/integers.h"

namespace mtplan::planner {

namespace {

// Returns the bytes of one rank's shards of `tensors` in `layouts`.
Bytes boundaryBytes(const ModelGraph &model, const SegmentPlan &plan,
                    const std::vector<int> &tensors,
                    const std::vector<Layout> &layouts,
                    const Setting &setting) {
  const SegmentGraph &segment = model.segments[at(plan.segment)];
  Bytes bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor &tensor = segment.tensors[at(tensors[i])];
    bytes += Bytes{localBytes(tensor.shape, layouts[i], tensor.elementBytes,
                              setting.mesh)};
  }
  return bytes;
}

const SegmentPlan &planOf(const SegmentPlan &run) { return run; }
const SegmentPlan &planOf(const PricedRun &run) { return *run.plan; }

template <typename Parts>
std::vector<TiedGradient> tiedIn(const ModelGraph &model, const Parts &parts,
                                 const Setting &setting, int stages) {
  std::vector<TiedGradient> tied;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const ParameterState *state = nullptr;
    int holders = 0, last = -1;
    if (!model.parameters[p].shared)
      continue;
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (const auto &run : parts[part])
        if (planOf(run).parameters[p]) {
          int stage = static_cast<int>(part) % stages;
          holders += stage != last;
          last = stage;
          state = &*planOf(run).parameters[p];
        }
    if (holders > 1)
      tied.push_back({static_cast<int>(p), holders,
                      tiedGradientBytes(model.parameters[p], *state, setting)});
  }
  return tied;
}

Bytes tiedBytes(const ModelGraph &model, const PricedParts &parts,
                const Setting &setting, int stages) {
  Bytes bytes;
  for (const TiedGradient &one : tiedIn(model, parts, setting, stages))
    bytes += one.bytes;
  return bytes;
}

/// Converts phase times, messages and updates to times of the simulator.
class StepTimes {
public:
  StepTimes(const Setting &s, const Parallelism &p, const Overlaps &o)
      : setting(s), config(p), overlaps(o), dataTax(replicaTaxOf(s, p)) {}

  /// Returns the times of a slice, and adds to `stage` the slice's work that
  /// runs once a step.
  SliceTimes sliceOf(const PhaseTimes &phases, int count,
                     StageTimes &stage) const {
    SliceTimes slice = sliceWithoutTax(phases, config);
    slice.count = count;
    Seconds forward, backward;
    if (overlaps.gather)
      forward = addTax(slice.forward, slice.gather);
    if (overlaps.reduce)
      backward = addTax(slice.backward, slice.reduce);
    stage.update += phases.update * count;
    // ZeRO-3 all-gathers weights in both phases. With lower ZeRO stages,
    // weights move once a step.
    if (config.zeroStage > 2)
      backward += forward;
    (config.zeroStage > 2 ? slice.forward : stage.update) +=
        forward * (config.zeroStage > 2 ? 1.0 : count);
    (config.zeroStage > 1 ? slice.backward : stage.update) +=
        backward * (config.zeroStage > 1 ? 1.0 : count);
    return slice;
  }

  Seconds sendTime(Bytes bytes) const {
    if (config.pp == 1)
      return {};
    const Software &software = *setting.software;
    Seconds time;
    if (software.scattersSends && config.tp > 1 &&
        isReplicated(setting.boundary)) {
      bytes = bytes / config.tp;
      const int between =
          setting.mesh.stride(tensorAxesOf(setting.mesh).back());
      time = collectiveTime(StepKind::allGather, bytes,
                            {config.tp, between, setting.mesh.ranks()},
                            *setting.machine);
    }
    // The receiver is the rank of the next stage with the same index. The
    // simulator has two sends per micro-batch, one forward and one backward.
    time += pointToPointTime(bytes, setting.mesh.ranks(), *setting.machine);
    return time * (software.transfers / 2.0);
  }

  /// Lengthens the slices of `chunk`, whose times are those of the device, to
  /// the times in which the host launches their work. In a pipeline, the host
  /// waits for each message, so it cannot launch a phase before the preceding
  /// phase is done.
  void waitForLaunches(const StepPart &part, ChunkTimes &chunk) const {
    Seconds forward, backward, launchForward, launchBackward;
    for (const SliceTimes &slice : chunk.slices) {
      forward += slice.forward * slice.count;
      backward += slice.backward * slice.count;
    }
    for (const StepRun &run : part.runs) {
      launchForward += run.times.launchForward * run.count;
      launchBackward += run.times.launchBackward * run.count;
    }
    auto factor = [](Seconds launch, Seconds device) {
      return launch > device ? launch / device : 1.0;
    };
    double first = factor(launchForward, forward);
    double second = factor(launchBackward, backward);
    if (config.pp == 1)
      first = second =
          factor(launchForward + launchBackward, forward + backward);
    for (SliceTimes &slice : chunk.slices) {
      slice.forward = slice.forward * first;
      slice.backward = slice.backward * second;
      slice.weightGradient = slice.weightGradient * second;
    }
    chunk.launch = forward * (first - 1.0) + backward * (second - 1.0);
  }

  /// Adds the time that compute loses while sends overlap.
  void taxSends(ChunkTimes &chunk) const {
    if (!overlaps.pointToPoint || chunk.slices.empty())
      return;
    SliceTimes &slice = chunk.slices.back();
    double tax = setting.software->overlap.tax / slice.count;
    slice.forward += tax * chunk.sendForward;
    slice.backward += tax * chunk.sendBackward;
  }

private:
  // Compute and a collective that overlap both take longer, by `dataTax` times
  // the shorter of their times. Adds this time to `collective` and returns it,
  // so that the caller can add it to compute.
  Seconds addTax(Seconds compute, Seconds &collective) const {
    Seconds lost = dataTax * std::min(compute, collective);
    collective += lost;
    return lost;
  }

  const Setting &setting;
  const Parallelism &config;
  const Overlaps &overlaps;
  double dataTax; ///< the tax on collectives between replicas
};

// Returns a period of the steady state, in micro-batches. With one stage, the
// period is 1. With several stages, the period is the round trip of a message
// over some of the stages. Twelve is a multiple of every round trip of up to
// four micro-batches, and the error for longer round trips is small.
int periodOf(const ScheduleShape &shape) {
  if (shape.stages == 1)
    return 1;
  return shape.kind == ScheduleKind::interleaved ? std::lcm(12, shape.stages)
                                                 : 12;
}

int simulatedMicroBatches(const ScheduleShape &shape) {
  if (shape.kind == ScheduleKind::gpipe)
    return shape.microBatches;
  int few = shape.stages == 1 ? 4 : 8 * shape.stages + 2 * periodOf(shape);
  return std::min(shape.microBatches, few);
}

// Removes micro-batches of the steady state from `shape`, and returns the
// number of removed micro-batches.
int cutRepeated(ScheduleShape &shape) {
  int period = periodOf(shape);
  int left =
      (shape.microBatches - simulatedMicroBatches(shape)) / period * period;
  shape.microBatches -= left;
  return left;
}

Seconds repeatedTime(StepProblem few, Seconds step, int left) {
  if (left == 0)
    return {};
  ScheduleShape &shape = few.shape;
  int period = periodOf(shape);
  shape.microBatches -= period;
  Seconds before = stepSeconds(few, scheduleOf(shape));
  return (step - before) / period * left;
}

} // namespace

std::vector<TiedGradient>
tiedGradientsOf(const ModelGraph &model,
                const std::vector<std::vector<SegmentPlan>> &parts,
                const Setting &setting, int stages) {
  return tiedIn(model, parts, setting, stages);
}

SliceTimes sliceWithoutTax(const PhaseTimes &phases,
                           const Parallelism &config) {
  SliceTimes slice;
  slice.forward = phases.forward.total();
  slice.backward = phases.backward.total();
  slice.weightGradient = phases.weightGradient;
  // If a strategy shards a weight by position or expert over an axis whose
  // ranks otherwise hold replicas, the weight and its gradient change layout
  // between these ranks in every micro-batch. That traffic overlaps compute
  // only with ZeRO-3 (weights) or ZeRO-2 (gradients).
  if (config.zeroStage < 3) {
    slice.forward += phases.gatherForward;
    slice.backward += phases.gatherBackward;
  }
  if (config.zeroStage < 2)
    slice.backward += phases.reduce;
  // The simulator has one all-gather time for forward and backward: the mean.
  slice.gather = config.zeroStage > 2
                     ? (phases.gatherForward + phases.gatherBackward) / 2.0
                     : phases.gatherStep;
  slice.reduce =
      config.zeroStage > 1
          ? phases.reduce +
                phases.reduceStep / static_cast<double>(config.microBatches())
          : phases.reduceStep;
  return slice;
}

double replicaTaxOf(const Setting &setting, const Parallelism &config) {
  return taxOf(*setting.software,
               std::min(setting.machine->devicesPerNode / config.tp,
                        config.dp * config.cp));
}

Seconds sharingTime(const Setting &setting, const Parallelism &config) {
  const bool shared = config.zeroStage > 0 && config.zeroStage < 3;
  return setting.software->parameters.perSharer *
         (shared ? double(config.zeroRanks) * config.cp : 0.0);
}

Seconds hostStepTime(const Setting &setting, const Parallelism &config) {
  const HostLaunch &host = setting.software->host;
  return config.zeroStage > 0 ? host.step + host.shardedStep : host.step;
}

StepProblem stepProblemOf(const std::vector<StepPart> &parts, Bytes tied,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps) {
  StepProblem problem;
  problem.shape = shapeOf(config);
  problem.gather =
      config.zeroStage > 2 ? GatherRule::eachUse : GatherRule::beforeStep;
  problem.reduce =
      config.zeroStage > 1 ? ReduceRule::eachMicroBatch : ReduceRule::onceAStep;
  problem.overlap = overlaps;
  problem.stages.resize(at(config.pp));
  StepTimes times(setting, config, overlaps);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    StageTimes &stage = problem.stages[part % at(config.pp)];
    ChunkTimes chunk;
    for (const StepRun &run : parts[part].runs) {
      chunk.slices.push_back(times.sliceOf(run.times, run.count, stage));
      chunk.down += run.times.host.down * run.count;
      chunk.hostUpdate += run.times.host.update * run.count;
      chunk.up += run.times.host.up * run.count;
    }
    times.waitForLaunches(parts[part], chunk);
    if (part + 1 < parts.size())
      chunk.sendForward = times.sendTime(parts[part].sentForward);
    if (part > 0)
      chunk.sendBackward = times.sendTime(parts[part].sentBackward);
    times.taxSends(chunk);
    // The host's part of a message slows no kernels.
    if (config.pp > 1 && part + 1 < parts.size())
      chunk.sendForward += setting.software->host.message;
    if (config.pp > 1 && part > 0)
      chunk.sendBackward += setting.software->host.message;
    stage.chunks.push_back(std::move(chunk));
  }
  for (StageTimes &stage : problem.stages)
    stage.update +=
        sharingTime(setting, config) + hostStepTime(setting, config);
  if (config.pp > 1 && tied.value > 0.0) {
    // The group has one rank of the first stage and one of the last.
    int apart = setting.mesh.ranks() * (config.pp - 1);
    problem.tied = collectiveTime(StepKind::allReduce, tied,
                                  {2, apart, 2 * apart}, *setting.machine);
  }
  return problem;
}

StepProblem stepProblemOf(const ModelGraph &model, const PricedParts &parts,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps) {
  std::vector<StepPart> step(parts.size());
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const PricedRun &run : parts[part])
      step[part].runs.push_back({*run.times, run.count});
    const SegmentPlan &last = *parts[part].back().plan;
    step[part].sentForward =
        boundaryBytes(model, last, model.segments[at(last.segment)].carriedOut,
                      last.carriedOut, setting);
    const SegmentPlan &first = *parts[part].front().plan;
    step[part].sentBackward = boundaryBytes(
        model, first, model.segments[at(first.segment)].gradientOut,
        first.gradientOut, setting);
  }
  return stepProblemOf(step, tiedBytes(model, parts, setting, config.pp),
                       setting, config, overlaps);
}

Seconds stepSecondsOf(StepProblem problem) {
  int left = cutRepeated(problem.shape);
  Seconds step = stepSeconds(problem, scheduleOf(problem.shape));
  return step + repeatedTime(std::move(problem), step, left);
}

StepTime priceStep(const ModelGraph &model, const PricedParts &parts,
                   const Setting &setting, const Parallelism &config,
                   const Overlaps &overlaps) {
  StepProblem problem = stepProblemOf(model, parts, setting, config, overlaps);
  int left = cutRepeated(problem.shape);
  StepResult result = simulateStep(problem, scheduleOf(problem.shape));
  StepTime time;
  time.step = result.step + repeatedTime(problem, result.step, left);

  std::size_t busiest = 0;
  for (std::size_t s = 1; s < result.stages.size(); ++s)
    if (result.stages[s].busy > result.stages[busiest].busy)
      busiest = s;
  auto scale = static_cast<double>(config.microBatches());
  for (std::size_t part = busiest; part < parts.size(); part += at(config.pp))
    for (const PricedRun &run : parts[part])
      time.add(*run.times, scale * run.count);
  const Seconds hostStep = hostStepTime(setting, config);
  time.launch = hostStep;
  for (const ChunkTimes &chunk : problem.stages[busiest].chunks)
    time.launch += chunk.launch * scale;
  const StageUse &use = result.stages[busiest];
  time.update = use.update - hostStep;
  time.data = use.exposedData + use.exposedSync;
  time.host = use.exposedHost;
  time.pipeline = time.step - (time.compute + time.local + time.tensor +
                               time.context + time.exchange + time.update +
                               time.data + time.host + time.launch);
  // Without a pipeline, the remainder is the time of waits for replicas. A tiny
  // remainder is a rounding error.
  if (time.pipeline < 1e-12 * time.step)
    time.pipeline = {};
  if (config.pp == 1) {
    time.data += time.pipeline;
    time.pipeline = {};
  }
  return time;
}

} // namespace mtplan::planner

//===- bounds.cpp - Lower bounds from work and sizes alone ----------------===//

#include "planner/search/bound/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/cost/compute_cost.h"
#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

namespace {

// Returns the bytes of the tensor for a batch of one.
double bytesOf(const Tensor &tensor) {
  double bytes = tensor.elementBytes;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (static_cast<int>(d) != tensor.batchDim)
      bytes *= static_cast<double>(tensor.shape[d]);
  return bytes;
}

// Returns the time of one micro-batch's forward in the first chunk of a stage.
Seconds forwardOf(const StageTimes &stage) {
  Seconds time;
  for (const SliceTimes &slice : stage.chunks.front().slices)
    time += slice.count * slice.forward;
  return time;
}

// Returns the time of one micro-batch's backward in the first chunk of a stage,
// without or with the gradients of weights.
Seconds backwardOf(const StageTimes &stage, bool weightGradients) {
  Seconds time;
  for (const SliceTimes &slice : stage.chunks.front().slices)
    time +=
        slice.count * (weightGradients ? slice.backward
                                       : slice.backward - slice.weightGradient);
  return time;
}

// Returns the time of a stage's all-gathers before its first forward, or of its
// reductions after its last backward, that cannot overlap compute: that of the
// first chunk's first segment if they overlap, otherwise those of the first
// chunk or, if they run once a step, of all chunks.
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
  // A reduction once a step follows the send if both run on compute.
  const bool afterSend = !overlaps.reduce && isOnceAStep && reduce > Seconds{};
  const Seconds reduced = reduce + (afterSend ? send : Seconds{});
  const Seconds end =
      (overlaps.reduce ? std::max(reduce, send) : reduce + send) + sequential;
  if (isOneChunk)
    return std::max(end, reduced + onHost);
  // If the tied chunk is reduced, its gradient is the last of all.
  const bool isReduced = std::ranges::any_of(
      stage.chunks.front().slices,
      [](const SliceTimes &one) { return one.count * one.reduce > Seconds{}; });
  const Seconds byTied = (isReduced ? reduce : Seconds{}) + tied + stage.update;
  // The host may work for one chunk while another is reduced.
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

} // namespace

Seconds pipelineBound(Seconds through, const Parallelism &config) {
  auto m = static_cast<double>(config.microBatches());
  if (config.pp == 1)
    return through * m;
  if (config.virtualStages > 1 || config.schedule == ScheduleKind::zeroBubble)
    return through * (m / config.pp);
  return through / (1.0 - std::pow(1.0 - 1.0 / m, config.pp));
}

// Before a stage starts, the first forward runs through the previous stages.
// After the stage ends, the last backward runs through them. A zero-bubble
// schedule may postpone parts of that backward, so only forward counts.
Seconds cutBound(const Parallelism &config, const LayerTimes &times) {
  bool postponesBackward = config.schedule == ScheduleKind::zeroBubble;
  Seconds before, most;
  std::size_t layer = 0;
  for (int count : config.layers) {
    Seconds work, fillDrain;
    for (int i = 0; i < count; ++i, ++layer) {
      work += times.both[layer];
      fillDrain += postponesBackward ? times.forward[layer] : times.both[layer];
    }
    most = std::max(most,
                    before + work * static_cast<double>(config.microBatches()));
    before += fillDrain;
  }
  return most;
}

OrderedCuts orderedCuts(const Parallelism &config, const LayerTimes &times) {
  std::vector<std::vector<int>> all =
      unevenCuts(static_cast<int>(times.both.size()), config.pp);
  std::vector<std::pair<double, std::size_t>> order;
  Parallelism cut = config;
  for (std::size_t i = 0; i < all.size(); ++i) {
    cut.layers = all[i];
    order.emplace_back(cutBound(cut, times).value, i);
  }
  std::ranges::sort(order);
  OrderedCuts ordered;
  for (auto [bound, i] : order) {
    ordered.layers.push_back(std::move(all[i]));
    ordered.bounds.push_back({bound});
  }
  return ordered;
}

// The step takes at least c C + F, by the stage's fill and drain or by a part
// of `zeroBubble`. It takes at least T, and at least sequential * (C + T): both
// have the form s C + t T. So it takes at least every weighted mean of the
// first and of one of the others. If `share` is the weight of the other one,
// the mean is a C + b T + (1 - share) F, with b = weight * a.
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
  for (const Part &part : zeroBubble)
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

std::vector<StageBound> stageBounds(const StepProblem &problem) {
  const bool postponesBackward = problem.shape.kind == ScheduleKind::zeroBubble;
  std::vector<StageBound> bounds;
  // `fill` is the earliest time at which the stage has its first input, and
  // `drain` the time from the start of the previous stage's last backward to
  // the end of the step.
  Seconds fill, drain;
  for (const StageTimes &stage : problem.stages) {
    const ChunkTimes &first = stage.chunks.front();
    const Seconds start = std::max(fill, exposedGather(stage, problem));
    const std::size_t index = bounds.size();
    const Seconds sends = exposedSends(problem, index);
    // A zero-bubble schedule ends a stage's compute with gradients of weights,
    // so that neither a send nor the previous stage's last backward follows.
    Seconds send, end;
    if (!postponesBackward && !bounds.empty())
      send = first.sendBackward;
    if (problem.overlap.pointToPoint)
      end = std::max(afterCompute(problem, index, {}), send + drain);
    else
      end = std::max(afterCompute(problem, index, send), send + drain) - send;
    bounds.emplace_back().fillDrain = start + sends + end;
    fill = start + forwardOf(stage) + first.sendForward;
    if (!postponesBackward)
      drain = backwardOf(stage, true) + end +
              (problem.overlap.pointToPoint ? Seconds{} : send);
  }
  return bounds;
}

void addZeroBubbleBounds(const StepProblem &problem,
                         std::vector<StageBound> &bounds) {
  const std::vector<StageTimes> &stages = problem.stages;
  const double microBatches = problem.shape.microBatches;
  Seconds fill, drain; // as in stageBounds()
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const ChunkTimes &own = stages[s].chunks.front();
    const Seconds forward = forwardOf(stages[s]);
    const Seconds inputGradient = backwardOf(stages[s], false);
    const double ahead = std::min<double>(
        warmUp(problem.shape, static_cast<int>(s)), microBatches - 1);
    Seconds begin;
    for (std::size_t other = 0; other < stages.size(); ++other) {
      const ChunkTimes &chunk = stages[other].chunks.front();
      if (other != s)
        begin += forwardOf(stages[other]);
      if (other > s)
        begin += backwardOf(stages[other], false) + chunk.sendBackward;
      if (other + 1 < stages.size())
        begin += chunk.sendForward;
    }
    bounds[s].zeroBubble.push_back(
        {1.0 - ahead / microBatches, begin +
                                         ahead * backwardOf(stages[s], true) +
                                         afterCompute(problem, s, {})});

    const Seconds start = std::max(fill, exposedGather(stages[s], problem));
    const double left = static_cast<double>(s) + 1.0;
    const Seconds send = problem.overlap.pointToPoint
                             ? own.sendBackward
                             : exposedSends(problem, s);
    if (s > 0 && left < microBatches)
      bounds[s].zeroBubble.push_back(
          {1.0 - left / microBatches,
           start + left * (forward + inputGradient) + send + drain});
    fill = start + forward + own.sendForward;
    if (s == 0)
      drain = backwardOf(stages[s], true) + afterCompute(problem, s, {});
    else
      drain += inputGradient + own.sendBackward;
  }
}

Bounds::Bounds(const ModelGraph &theModel, const Machine &theMachine,
               const SearchOptions &theOptions)
    : model(theModel), machine(theMachine), options(theOptions) {
  for (const SegmentGraph &segment : model.segments)
    measure(segment);
}

void Bounds::add(const Parameter &parameter, ParameterSize &size) {
  double elements = elementsOf(parameter.shape);
  bool ofExperts = isOfExperts(parameter);
  (ofExperts ? size.expertElements : size.elements) += elements;
  (ofExperts ? size.expertBytes : size.bytes) +=
      elements * parameter.elementBytes;
}

// Returns one rank's bytes if parameters, gradients and the optimizer's state
// are sharded as far as the configuration allows.
double Bounds::heldBytes(const ParameterSize &size,
                         const Parallelism &config) const {
  StateBytes state = stateBytesOf(options.precision);
  double optimizer = config.offload == Offload::none ? state.optimizer : 0.0;
  double sharing =
      config.zeroStage > 0 ? double(config.zeroRanks) * config.cp : 1.0;
  auto held = [&](double elements, double bytes, double owners) {
    double split = std::max(owners, sharing);
    return bytes / (config.zeroStage > 2 ? split : owners) +
           elements *
               (state.gradient / (config.zeroStage > 1 ? split : owners) +
                optimizer / split);
  };
  return (held(size.elements, size.bytes, 1.0) +
          held(size.expertElements, size.expertBytes, config.ep)) /
         config.tp;
}

void Bounds::measure(const SegmentGraph &segment) {
  SegmentSize size;
  std::vector<bool> saved(segment.tensors.size(), false);
  for (const Op &op : segment.ops)
    for (const Use &use : op.operands)
      if (op.phase == Phase::backward &&
          segment.tensors[at(use.tensor)].phase == Phase::forward)
        saved[at(use.tensor)] = true;
  for (std::size_t t = 0; t < saved.size(); ++t) {
    const Tensor &tensor = segment.tensors[t];
    bool perSample = tensor.batchDim >= 0;
    double bytes = bytesOf(tensor);
    if (tensor.kind == TensorKind::input)
      (perSample ? size.inputsPerSample : size.inputsFixed) += bytes;
    // A stage stores a shared parameter once.
    if (tensor.kind == TensorKind::parameter) {
      const Parameter &parameter = model.parameters[at(tensor.parameter)];
      if (!parameter.shared)
        add(parameter, size.parameters);
      else if (!contains(size.shared, tensor.parameter))
        size.shared.push_back(tensor.parameter);
    }
    // Repeats may share one saved copy of a carried value, so the lower bound
    // omits the value.
    if (!saved[t] || tensor.kind != TensorKind::activation ||
        isCarriedOut(segment, static_cast<int>(t)))
      continue;
    (perSample ? size.perSample : size.fixed) += bytes;
    if (contains(segment.carriedIn, static_cast<int>(t)))
      (perSample ? size.carriedPerSample : size.carriedFixed) += bytes;
  }
  sizes.push_back(size);
}

Bounds::RepeatBytes Bounds::bytesOfRepeat(const Parallelism &config,
                                          double inFlight, int segment) const {
  double samples =
      static_cast<double>(config.microBatch) / config.tp / config.cp;
  double fixed = 1.0 / (double(config.tp) * config.cp * config.dp);
  const SegmentSize &size = sizes[at(segment)];
  RepeatBytes repeat;
  repeat.held = heldBytes(size.parameters, config);
  repeat.saved = (size.perSample * samples + size.fixed * fixed) * inFlight;
  if (!keepsAllTensors(config.recompute, *options.software) &&
      isLayer(model.segments[at(segment)]))
    repeat.discarded = repeat.saved - (size.carriedPerSample * samples +
                                       size.carriedFixed * fixed) *
                                          inFlight;
  repeat.inputs = size.inputsPerSample * samples + size.inputsFixed * fixed;
  return repeat;
}

Bounds::ParameterSize
Bounds::sharedBy(const Parallelism &config, int stage,
                 const std::vector<PipelinePart> &parts) const {
  ParameterSize shared;
  std::vector<bool> counted(model.parameters.size(), false);
  for (std::size_t part = at(stage); part < parts.size(); part += at(config.pp))
    for (const RepeatRange &range : parts[part])
      for (int p : sizes[at(range.segment)].shared) {
        if (!counted[at(p)])
          add(model.parameters[at(p)], shared);
        counted[at(p)] = true;
      }
  return shared;
}

double Bounds::stageBytes(const Parallelism &config, int stage,
                          const std::vector<PipelinePart> &parts) const {
  double share = recomputeShareOf(config, stage);
  double inFlight = inFlightOf(config, stage);
  double bytes = 0.0;
  std::vector<bool> hasInputs(model.segments.size(), false);
  for (std::size_t part = at(stage); part < parts.size(); part += at(config.pp))
    for (const RepeatRange &range : parts[part]) {
      RepeatBytes repeat = bytesOfRepeat(config, inFlight, range.segment);
      bytes +=
          range.count * (repeat.held + repeat.saved - share * repeat.discarded);
      // All repeats read the same inputs.
      if (!hasInputs[at(range.segment)])
        bytes += repeat.inputs;
      hasInputs[at(range.segment)] = true;
    }
  return bytes + heldBytes(sharedBy(config, stage, parts), config);
}

const std::vector<PipelinePart> &
Bounds::partsOf(const std::vector<int> &layers) {
  if (lastParts.first != layers)
    lastParts = {layers, pipelineParts(model, layers)};
  return lastParts.second;
}

Bytes Bounds::memory(const Parallelism &config) {
  const std::vector<PipelinePart> &parts = partsOf(config.layers);
  double bytes = stageBytes(config, 0, parts);
  if (config.pp > 1)
    bytes = std::max(bytes, stageBytes(config, config.pp - 1, parts));
  return Bytes{bytes} + machine.device.reserved;
}

Bytes Bounds::hostMemory(const Parallelism &config) {
  if (config.offload == Offload::none)
    return {};
  double host = stateBytesOf(settingOf(options, machine, config)).host;
  double sharing =
      config.zeroStage > 0 ? double(config.zeroRanks) * config.cp : 1.0;
  double most = 0.0;
  const std::vector<PipelinePart> &parts = partsOf(config.layers);
  for (int stage = 0; stage < config.pp; ++stage) {
    ParameterSize held = sharedBy(config, stage, parts);
    for (std::size_t part = at(stage); part < parts.size();
         part += at(config.pp))
      for (const RepeatRange &range : parts[part]) {
        const ParameterSize &repeat = sizes[at(range.segment)].parameters;
        held.elements += range.count * repeat.elements;
        held.expertElements += range.count * repeat.expertElements;
      }
    most = std::max(most, held.elements / sharing +
                              held.expertElements /
                                  std::max<double>(config.ep, sharing));
  }
  return Bytes{most * host / config.tp};
}

// The largest stage is at least any weighted mean over the stages. With weights
// 1 / (bytes of a layer on that stage), the weighted sum is the number of
// layers, which does not depend on the cut.
Bytes Bounds::memoryOfAnyCut(const Parallelism &config) const {
  double weights = 0.0, sum = layersOf(model);
  bool repeated = hasLayers(model);
  for (int stage = 0; stage < config.pp; ++stage) {
    double inFlight = inFlightOf(config, stage);
    double least = std::numeric_limits<double>::infinity(), less = 0.0;
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      if (repeated && !isLayer(model.segments[s]))
        continue;
      RepeatBytes repeat = bytesOfRepeat(config, inFlight, static_cast<int>(s));
      if (config.recomputeLayers < 0)
        repeat.saved -= repeat.discarded;
      else
        less = std::max(less, repeat.discarded * config.recomputeLayers);
      least = std::min(least, repeat.held + repeat.saved);
    }
    // Layers that need no memory on this stage may all be on it.
    if (least <= 0.0)
      return machine.device.reserved;
    weights += 1.0 / least;
    sum -= less / least;
  }
  return Bytes{sum / weights} + machine.device.reserved;
}

Seconds Bounds::compute(const Parallelism &config) {
  int ranks = config.dp * config.tp * config.cp;
  auto [entry, isNew] = computed.try_emplace(
      {ranks, config.microBatch * config.dp, config.recompute});
  auto &[once, more] = entry->second;
  if (isNew) {
    ModelGraph graph = withBatch(model, config.microBatch * config.dp);
    for (const SegmentGraph &segment : graph.segments) {
      std::vector<bool> recomputed =
          recomputedOps(segment, config.recompute, *options.software);
      std::vector<OpRun> runs =
          opRunsOf(segment, machine.device, *options.software,
                   options.precision, options.devices);
      for (std::size_t o = 0; o < segment.ops.size(); ++o) {
        Seconds time =
            computeLowerBound(segment.ops[o], runs[o], segment.tensors, ranks,
                              machine, *options.software) *
            segment.repeat;
        once += time;
        if (recomputed[o])
          more += time;
      }
    }
  }
  return once + more * leastRecomputeShareOf(config);
}

} // namespace mtplan::planner

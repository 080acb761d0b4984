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

double bytesOf(const Tensor &tensor) { // with a batch of one
  double bytes = tensor.elementBytes;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (static_cast<int>(d) != tensor.batchDim)
      bytes *= static_cast<double>(tensor.shape[d]);
  return bytes;
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

// The memory of the largest stage is at least any weighted mean over the
// stages. With weights 1 / (bytes of a layer on that stage), the weighted sum
// is the number of layers, which does not depend on the cut.
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

//===- bounds.cpp - What no plan of a kind can do better than -------------===//

#include "planner/search/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "planner/cost/compute_cost.h"
#include "planner/index.h"
#include "planner/search/recompute.h"

namespace mtplan::planner {

namespace {

// Bytes for a batch of one.
double bytesOf(const Tensor &tensor) {
  double bytes = tensor.elementBytes;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (static_cast<int>(d) != tensor.batchDim)
      bytes *= static_cast<double>(tensor.shape[d]);
  return bytes;
}

} // namespace

Seconds pipelineFloor(Seconds through, const Parallelism &how) {
  auto m = static_cast<double>(how.microBatches());
  if (how.pp == 1)
    return through * m;
  if (how.virtualStages > 1 || how.schedule == ScheduleKind::zeroBubble)
    return through * (m / how.pp);
  return through / (1.0 - std::pow(1.0 - 1.0 / m, how.pp));
}

Bounds::Bounds(const ModelGraph &theModel, const Machine &theMachine,
               const SearchOptions &theOptions)
    : model(theModel), machine(theMachine), options(theOptions) {
  for (const SegmentGraph &segment : model.segments)
    measure(segment);
}

void Bounds::add(const Parameter &parameter, ParameterSize &size) {
  double elements = 1.0;
  for (std::int64_t extent : parameter.shape)
    elements *= static_cast<double>(extent);
  bool ofExperts = std::ranges::find(parameter.splits, Split::expert) !=
                   parameter.splits.end();
  (ofExperts ? size.expertElements : size.elements) += elements;
  (ofExperts ? size.expertBytes : size.bytes) +=
      elements * parameter.elementBytes;
}

// Of all replicas, those among which a parameter, its gradient and the
// optimizer's state are split.
double Bounds::heldBytes(const ParameterSize &size,
                         const Parallelism &how) const {
  StateBytes state = stateBytesOf(options.precision);
  double optimizer = how.offload == Offload::none ? state.optimizer : 0.0;
  double sharing = how.zeroStage > 0 ? double(how.zeroRanks) * how.cp : 1.0;
  auto held = [&](double elements, double bytes, double owners) {
    double split = std::max(owners, sharing);
    return bytes / (how.zeroStage > 2 ? split : owners) +
           elements * (state.gradient / (how.zeroStage > 1 ? split : owners) +
                       optimizer / split);
  };
  return (held(size.elements, size.bytes, 1.0) +
          held(size.expertElements, size.expertBytes, how.ep)) /
         how.tp;
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
    // What several copies or segments share a stage holds once.
    if (tensor.kind == TensorKind::parameter) {
      const Parameter &parameter = model.parameters[at(tensor.parameter)];
      if (!parameter.shared)
        add(parameter, size.parameters);
      else if (std::ranges::find(size.shared, tensor.parameter) ==
               size.shared.end())
        size.shared.push_back(tensor.parameter);
    }
    // What copies hand on they may keep together; without it the floor is
    // lower.
    if (!saved[t] || tensor.kind != TensorKind::activation ||
        isHandedOn(segment, static_cast<int>(t)))
      continue;
    (perSample ? size.perSample : size.fixed) += bytes;
    if (std::ranges::find(segment.carriedIn, static_cast<int>(t)) !=
        segment.carriedIn.end())
      (perSample ? size.handedPerSample : size.handedFixed) += bytes;
  }
  sizes.push_back(size);
}

Bounds::CopyBytes Bounds::bytesOfCopy(const Parallelism &how, double inFlight,
                                      int segment) const {
  double samples = static_cast<double>(how.microBatch) / how.tp / how.cp;
  double fixed = 1.0 / (double(how.tp) * how.cp * how.dp);
  const SegmentSize &size = sizes[at(segment)];
  CopyBytes copy;
  copy.held = heldBytes(size.parameters, how);
  copy.kept = (size.perSample * samples + size.fixed * fixed) * inFlight;
  if (!keepsAllTensors(how.recompute, *options.software) &&
      isLayer(model.segments[at(segment)]))
    copy.keptLess =
        copy.kept -
        (size.handedPerSample * samples + size.handedFixed * fixed) * inFlight;
  copy.inputs = size.inputsPerSample * samples + size.inputsFixed * fixed;
  return copy;
}

Bounds::ParameterSize
Bounds::sharedBy(const Parallelism &how, int stage,
                 const std::vector<PipelinePart> &parts) const {
  ParameterSize shared;
  std::vector<bool> counted(model.parameters.size(), false);
  for (std::size_t part = at(stage); part < parts.size(); part += at(how.pp))
    for (const CopyRange &range : parts[part])
      for (int p : sizes[at(range.segment)].shared) {
        if (!counted[at(p)])
          add(model.parameters[at(p)], shared);
        counted[at(p)] = true;
      }
  return shared;
}

double Bounds::stageBytes(const Parallelism &how, int stage,
                          const std::vector<PipelinePart> &parts) const {
  double share = recomputeShareOf(how, stage);
  double inFlight = inFlightOf(how, stage);
  double bytes = 0.0;
  std::vector<bool> hasInputs(model.segments.size(), false);
  for (std::size_t part = at(stage); part < parts.size(); part += at(how.pp))
    for (const CopyRange &range : parts[part]) {
      CopyBytes copy = bytesOfCopy(how, inFlight, range.segment);
      bytes += range.count * (copy.held + copy.kept - share * copy.keptLess);
      // All copies read the same.
      if (!hasInputs[at(range.segment)])
        bytes += copy.inputs;
      hasInputs[at(range.segment)] = true;
    }
  return bytes + heldBytes(sharedBy(how, stage, parts), how);
}

Bytes Bounds::memory(const Parallelism &how) const {
  std::vector<PipelinePart> parts = pipelineParts(model, how.layers);
  double bytes = stageBytes(how, 0, parts);
  if (how.pp > 1)
    bytes = std::max(bytes, stageBytes(how, how.pp - 1, parts));
  return Bytes{bytes} + machine.device.reserved;
}

Bytes Bounds::hostMemory(const Parallelism &how) const {
  if (how.offload == Offload::none)
    return {};
  double host = stateBytesOf(settingOf(options, machine, how)).host;
  double sharing = how.zeroStage > 0 ? double(how.zeroRanks) * how.cp : 1.0;
  double most = 0.0;
  std::vector<PipelinePart> parts = pipelineParts(model, how.layers);
  for (int stage = 0; stage < how.pp; ++stage) {
    ParameterSize held = sharedBy(how, stage, parts);
    for (std::size_t part = at(stage); part < parts.size(); part += at(how.pp))
      for (const CopyRange &range : parts[part]) {
        const ParameterSize &copy = sizes[at(range.segment)].parameters;
        held.elements += range.count * copy.elements;
        held.expertElements += range.count * copy.expertElements;
      }
    most = std::max(most, held.elements / sharing +
                              held.expertElements /
                                  std::max<double>(how.ep, sharing));
  }
  return Bytes{most * host / how.tp};
}

// Of any weights, the weighted mean of all stages is no more than the largest.
// With one over what a layer takes there, layers as such add up to their
// number.
Bytes Bounds::memoryOfAnyCut(const Parallelism &how) const {
  double weights = 0.0, sum = layersOf(model);
  bool repeated = std::ranges::any_of(model.segments, isLayer);
  for (int stage = 0; stage < how.pp; ++stage) {
    double inFlight = inFlightOf(how, stage);
    double least = std::numeric_limits<double>::infinity(), less = 0.0;
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      if (repeated && !isLayer(model.segments[s]))
        continue;
      CopyBytes copy = bytesOfCopy(how, inFlight, static_cast<int>(s));
      if (how.recomputeLayers < 0)
        copy.kept -= copy.keptLess;
      else
        less = std::max(less, copy.keptLess * how.recomputeLayers);
      least = std::min(least, copy.held + copy.kept);
    }
    // Layers that take nothing may all be here.
    if (least <= 0.0)
      return machine.device.reserved;
    weights += 1.0 / least;
    sum -= less / least;
  }
  return Bytes{sum / weights} + machine.device.reserved;
}

Seconds Bounds::compute(const Parallelism &how) {
  int ranks = how.dp * how.tp * how.cp;
  auto [entry, isNew] =
      computed.try_emplace({ranks, how.microBatch * how.dp, how.recompute});
  auto &[once, more] = entry->second;
  if (isNew) {
    ModelGraph graph = withBatch(model, how.microBatch * how.dp);
    for (const SegmentGraph &segment : graph.segments) {
      std::vector<bool> again =
          operatorsAgain(segment, how.recompute, *options.software);
      std::vector<OpRun> runs =
          opRunsOf(segment, machine.device, *options.software,
                   options.precision, options.devices);
      for (std::size_t o = 0; o < segment.ops.size(); ++o) {
        Seconds time = computeFloor(segment.ops[o], runs[o], segment.tensors,
                                    ranks, machine, *options.software) *
                       segment.repeat;
        once += time;
        if (again[o])
          more += time;
      }
    }
  }
  return once + more * leastRecomputeShareOf(how);
}

} // namespace mtplan::planner

//===- bounds.cpp - What no plan of a kind can do better than -------------===//

#include "planner/search/bounds.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/compute_cost.h"
#include "planner/search/recompute.h"
#include "planner/simulate/in_flight.h"

namespace mtplan::planner {

namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// Bytes for a batch of one.
double bytesOf(const Tensor &tensor) {
  double bytes = tensor.elementBytes;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    if (static_cast<int>(d) != tensor.batchDim)
      bytes *= static_cast<double>(tensor.shape[d]);
  return bytes;
}

double elementsOf(const Parameter &parameter) {
  double elements = 1.0;
  for (std::int64_t extent : parameter.shape)
    elements *= static_cast<double>(extent);
  return elements;
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
    // What all copies share is not one copy's; without it the floor is lower.
    if (tensor.kind == TensorKind::parameter &&
        !(model.parameters[at(tensor.parameter)].shared &&
          segment.repeat > 1)) {
      const Parameter &parameter = model.parameters[at(tensor.parameter)];
      double elements = elementsOf(parameter);
      size.elements += elements;
      size.parameterBytes += elements * parameter.elementBytes;
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

double Bounds::stageBytes(const Parallelism &how, int stage,
                          const std::vector<PipelinePart> &parts) const {
  ScheduleShape shape{how.schedule, how.pp, how.virtualStages,
                      static_cast<int>(how.microBatches())};
  double inFlight =
      static_cast<double>(planner::inFlight(shape, stage).total()) /
      how.virtualStages;
  double samples = static_cast<double>(how.microBatch) / how.tp / how.cp;
  double fixed = 1.0 / (double(how.tp) * how.cp * how.dp);
  StateBytes state = stateBytesOf(options.precision);
  double sharing = how.zeroStage > 0 ? double(how.zeroRanks) * how.cp : 1.0;
  double perElement =
      state.gradient / (how.zeroStage > 1 ? sharing : 1.0) +
      (how.offload == Offload::none ? state.optimizer : 0.0) / sharing;
  double bytes = 0.0;
  for (std::size_t part = at(stage); part < parts.size(); part += at(how.pp))
    for (const CopyRange &range : parts[part]) {
      const SegmentSize &size = sizes[at(range.segment)];
      bool again = !keepsAllTensors(how.recompute, *options.software) &&
                   isLayer(model.segments[at(range.segment)]);
      double share = again ? recomputeShareOf(how) : 0.0;
      double kept =
          share * (size.handedPerSample * samples + size.handedFixed * fixed) +
          (1.0 - share) * (size.perSample * samples + size.fixed * fixed);
      bytes += range.count *
               (kept * inFlight +
                (size.parameterBytes / (how.zeroStage > 2 ? sharing : 1.0) +
                 size.elements * perElement) /
                    how.tp);
      bytes += size.inputsPerSample * samples + size.inputsFixed * fixed;
    }
  // A parameter that several segments of the stage share is there once.
  if (how.pp == 1)
    for (const Parameter *parameter : measuredAgain())
      bytes -= elementsOf(*parameter) *
               (parameter->elementBytes / (how.zeroStage > 2 ? sharing : 1.0) +
                perElement) /
               how.tp;
  return bytes;
}

// Parameters that segments share, once for every segment but the first.
std::vector<const Parameter *> Bounds::measuredAgain() const {
  std::vector<const Parameter *> again;
  std::vector<int> uses(model.parameters.size(), 0);
  for (const SegmentGraph &segment : model.segments)
    for (const Tensor &tensor : segment.tensors)
      if (tensor.kind == TensorKind::parameter &&
          model.parameters[at(tensor.parameter)].shared &&
          uses[at(tensor.parameter)]++ > 0)
        again.push_back(&model.parameters[at(tensor.parameter)]);
  return again;
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
  Setting setting = settingOf(options, machine, how);
  double sharing = how.ep; // of experts, whatever ZeRO does
  if (how.zeroStage > 0)
    sharing = std::max(how.zeroRanks, how.ep) * double(how.cp);
  double most = 0.0;
  std::vector<PipelinePart> parts = pipelineParts(model, how.layers);
  for (int stage = 0; stage < how.pp; ++stage) {
    double elements = 0.0;
    for (std::size_t part = at(stage); part < parts.size(); part += at(how.pp))
      for (const CopyRange &range : parts[part])
        elements += range.count * sizes[at(range.segment)].elements;
    most = std::max(most, elements);
  }
  // What several segments share, each has measured.
  for (const Parameter *parameter : measuredAgain())
    most -= elementsOf(*parameter);
  return Bytes{most * stateBytesOf(setting).host / how.tp / sharing};
}

Seconds Bounds::compute(const Parallelism &how) {
  int ranks = how.dp * how.tp * how.cp;
  auto [entry, isNew] = computed.try_emplace(
      {ranks, how.microBatch * how.dp, how.recompute, recomputeShareOf(how)},
      Seconds{});
  if (!isNew)
    return entry->second;
  ModelGraph graph = withBatch(model, how.microBatch * how.dp);
  for (const SegmentGraph &segment : graph.segments) {
    std::vector<bool> again =
        operatorsAgain(segment, how.recompute, *options.software);
    std::vector<OpRun> runs =
        opRunsOf(segment, machine.device, *options.software, options.precision,
                 options.devices);
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      entry->second +=
          computeFloor(segment.ops[o], runs[o], segment.tensors, ranks, machine,
                       *options.software) *
          (segment.repeat * (again[o] ? 1.0 + recomputeShareOf(how) : 1.0));
  }
  return entry->second;
}

} // namespace mtplan::planner

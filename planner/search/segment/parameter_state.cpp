//===- parameter_state.cpp - A parameter's storage and its price ----------===//

#include "planner/search/segment/parameter_state.h"

#include <cassert>

#include "planner/integers.h"
#include "planner/search/segment/reshard_prices.h"
#include "planner/search/segment/tensor_layouts.h"
#include "planner/search/space/pins.h"

namespace mtplan::planner {

namespace {

// Returns the axes over which ZeRO shards state: all but the tensor axes and,
// in hybrid sharding, "dp".
std::vector<int> zeroAxes(const Mesh &mesh) {
  std::vector<int> axes;
  bool hybrid = mesh.find("zero") >= 0;
  for (int axis = 0; axis < tensorAxisOf(mesh); ++axis) {
    const MeshAxis &one = mesh.axes[at(axis)];
    if (one.size > 1 && !(hybrid && one.name == "dp"))
      axes.push_back(axis);
  }
  return axes;
}

// Returns `stored` split further over ZeRO's axes. The axes split the longest
// unsplit dimension that their ranks divide, else a dimension that a tensor
// axis already splits. ZeRO's axes become the minor axes of that dimension, so
// that one reduce-scatter or all-gather per axis changes one layout into the
// other. If the ranks of all axes together divide no dimension, fewer axes are
// used. With padding, a dimension only needs as many rows as ranks.
Layout splitFurther(const Layout &stored, const Parameter &parameter,
                    const Mesh &mesh, bool padded) {
  auto mayBe = [&](std::size_t d, const Layout &layout) {
    std::int64_t ranks = 1;
    for (int axis : layout.dims[d])
      ranks *= mesh.axes[at(axis)].size;
    return padded ? parameter.shape[d] >= ranks
                  : divides(parameter.shape, layout, mesh);
  };
  std::vector<int> axes = zeroAxes(mesh);
  std::erase_if(
      axes, [&](int axis) { return placementOf(stored, axis) != kReplicated; });
  for (; !axes.empty(); axes.erase(axes.begin())) {
    Layout best;
    std::int64_t longest = 0;
    for (bool nested : {false, true}) {
      for (std::size_t d = 0; d < parameter.shape.size(); ++d) {
        if (stored.dims[d].empty() == nested || parameter.shape[d] <= longest)
          continue;
        Layout layout = stored;
        for (int axis : axes)
          layout = withPlacement(layout, axis, static_cast<int>(d));
        if (!mayBe(d, layout))
          continue;
        best = layout;
        longest = parameter.shape[d];
      }
      if (longest > 0)
        return best;
    }
  }
  return stored;
}

// Returns the layouts that the pin, or else the allowed splits, permit.
std::vector<Layout> storedLayouts(const Parameter &parameter,
                                  const std::vector<std::string> *pin,
                                  const Setting &setting) {
  const std::size_t rank = parameter.shape.size();
  for (std::size_t d = 0; pin && d < rank; ++d)
    for (const std::string &name : partsOfValue((*pin)[d]))
      if (!name.empty() && setting.mesh.find(name) < 0 &&
          tensorRanksOf(setting.mesh) > 1)
        return {}; // the pin asks for a second tensor axis
  return tensorLayouts(Layout::replicated(rank), parameter.shape, setting.mesh,
                       [&](int axis, int placement) {
                         for (std::size_t d = 0; pin && d < rank; ++d)
                           if (contains(partsOfValue((*pin)[d]),
                                        setting.mesh.axes[at(axis)].name) !=
                               (static_cast<int>(d) == placement))
                             return false;
                         return placement == kReplicated ||
                                (parameter.divisible &&
                                 (pin || setting.rules[at(axis)].has(
                                             parameter.splits[at(placement)])));
                       });
}

// Returns the subsets of the tensor axes with several ranks, each ascending.
std::vector<std::vector<int>> subsetsOfTensorAxes(const Mesh &mesh) {
  std::vector<std::vector<int>> subsets{{}};
  for (int axis : tensorAxesOf(mesh))
    if (mesh.axes[at(axis)].size > 1)
      for (std::size_t i = 0, known = subsets.size(); i < known; ++i) {
        subsets.push_back(subsets[i]);
        subsets.back().push_back(axis);
      }
  return subsets;
}

// Counts the bytes per element of gradient accumulators in mtplan's runtime,
// which are fp32 for gradients of any precision.
constexpr double kSumBytes = 4;

// Returns the time of accumulation by the measured kernels of mtplan's runtime.
// These kernels store the gradient of the first micro-batch and add the
// gradients of all others.
Seconds measuredAccumulation(BytesPerSec rate, const Parameter &parameter,
                             const ParameterState &state,
                             const Setting &setting) {
  double perElement =
      setting.microBatches * (bytesOf(setting.precision) + 2 * kSumBytes) -
      kSumBytes;
  double bytes =
      localBytes(parameter.shape, accumulatorLayout(state, setting.mesh),
                 perElement, setting.mesh);
  return Bytes{bytes} / rate;
}

// Returns `layout`, partial over every unused axis whose ranks have different
// samples or positions, and over ParameterState::reducedOncePerStep.
Layout withPartialSums(Layout layout, const ParameterState &state,
                       const Mesh &mesh) {
  for (int axis = 0; axis < tensorAxisOf(mesh); ++axis)
    if (mesh.axes[at(axis)].size > 1 &&
        placementOf(layout, axis) == kReplicated)
      layout = withPlacement(layout, axis, kPartial);
  for (int axis : state.reducedOncePerStep)
    layout = withPlacement(layout, axis, kPartial);
  return layout;
}

} // namespace

bool splitsWithData(const Parameter &parameter) {
  return std::ranges::any_of(parameter.splits, [](Split split) {
    return split == Split::batch || split == Split::sequence ||
           split == Split::expert;
  });
}

std::vector<StepKind> stepsBetweenReplicas(const ModelGraph &model,
                                           const SegmentGraph &segment,
                                           int tensor) {
  const Tensor &what = segment.tensors[at(tensor)];
  const bool isWeight = what.kind == TensorKind::parameter;
  int parameter = isWeight ? what.parameter : -1;
  for (const Accumulation &sum : segment.accumulations)
    if (sum.tensor == tensor)
      parameter = sum.parameter;
  if (parameter < 0 || splitsWithData(model.parameters[at(parameter)]))
    return {};
  return isWeight ? std::vector{StepKind::allGather}
                  : std::vector{StepKind::reduceScatter, StepKind::maskToRoot,
                                StepKind::slice};
}

bool parametersMove(const Setting &setting) {
  const AxisRule &rule = setting.rules[at(tensorAxisOf(setting.mesh))];
  return tensorRanksOf(setting.mesh) > 1 &&
         (rule.has(Split::batch) || rule.has(Split::sequence));
}

Layout accumulatorLayout(const ParameterState &state, const Mesh &mesh) {
  return withPartialSums(state.gradientIsSplit ? state.owned() : state.stored,
                         state, mesh);
}

Layout gradientLayout(const ParameterState &state, const Mesh &mesh) {
  return withPartialSums(gathered(state.stored, mesh), state, mesh);
}

Layout gathered(Layout layout, const Mesh &mesh) {
  for (int axis = 0; axis < tensorAxisOf(mesh); ++axis)
    layout = withPlacement(layout, axis, kReplicated);
  return layout;
}

std::vector<ParameterState> parameterStates(const ModelGraph &model,
                                            int parameter,
                                            const Setting &setting) {
  const Parameter &what = model.parameters[at(parameter)];
  const std::vector<std::string> *pin = nullptr;
  if (setting.pins && at(parameter) < setting.pins->parameters.size() &&
      setting.pins->parameters[at(parameter)])
    pin = &*setting.pins->parameters[at(parameter)];
  std::vector<ParameterState> states;
  for (const Layout &layout : storedLayouts(what, pin, setting))
    for (const std::vector<int> &late : subsetsOfTensorAxes(setting.mesh)) {
      ParameterState state{layout, late, {}, false};
      if (setting.zeroStage > 0 && what.divisible)
        state.optimizer =
            splitFurther(layout, what, setting.mesh, setting.padsShards);
      state.gradientIsSplit = setting.zeroStage > 1;
      if (setting.zeroStage > 2)
        state.stored = state.owned();
      states.push_back(std::move(state));
    }
  if (setting.sharedState && what.shared) {
    std::size_t chosen = at(*setting.sharedState);
    states = chosen < states.size() ? std::vector{states[chosen]}
                                    : std::vector<ParameterState>{};
  }
  return states;
}

Seconds squaresTime(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting) {
  double perElement =
      stateBytesOf(setting).gradient * setting.software->parameters.normReads;
  const Device &device = setting.machine->device;
  BytesPerSec rate = measuredPassRate(*setting.software, device, "square_sum",
                                      setting.precision);
  return Bytes{localBytes(parameter.shape, state.owned(), perElement,
                          setting.mesh)} /
         (rate.value > 0 ? rate : device.passRate());
}

Seconds accumulationTime(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting) {
  const ParameterTraffic &traffic = setting.software->parameters;
  const Mesh &mesh = setting.mesh;
  if (BytesPerSec rate =
          measuredPassRate(*setting.software, setting.machine->device,
                           "accumulate", setting.precision);
      rate.value > 0)
    return measuredAccumulation(rate, parameter, state, setting);
  // The software's figures are bytes per 16-bit element.
  double width = bytesOf(setting.precision) / 2.0;
  auto microBatches = static_cast<double>(setting.microBatches);
  double bytes = localBytes(parameter.shape, accumulatorLayout(state, mesh),
                            traffic.accumulation * width, mesh) *
                 (microBatches - 1);
  if (setting.zeroStage > 2)
    bytes += localBytes(parameter.shape, gathered(state.stored, mesh),
                        traffic.shardCopies * width, mesh) *
             microBatches;
  return Bytes{bytes} / setting.machine->device.passRate();
}

Seconds updateTime(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting) {
  StateBytes perElement = stateBytesOf(setting);
  double bytes =
      localBytes(parameter.shape, state.owned(), perElement.traffic,
                 setting.mesh) +
      localBytes(parameter.shape, state.stored, perElement.sweep, setting.mesh);
  const Device &device = setting.machine->device;
  BytesPerSec rate =
      measuredPassRate(*setting.software, device, "adamw", setting.precision);
  return Bytes{bytes} / (rate.value > 0 ? rate : device.passRate()) +
         squaresTime(parameter, state, setting);
}

HostTimes hostTimes(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting) {
  if (setting.offload == Offload::none)
    return {};
  assert(setting.machine->host && "offload to a host that is not described");
  const Host &host = *setting.machine->host;
  auto owned = [&](double bytesPerElement) {
    return Bytes{localBytes(parameter.shape, state.owned(), bytesPerElement,
                            setting.mesh)};
  };
  BytesPerSec rate = host.bandwidth * host.updateEfficiency /
                     sharersOf(*setting.machine, setting.devices);
  // The host reads the gradient in the precision in which it is sent.
  const StateBytes usual = stateBytesOf(setting.precision);
  const double gradient = stateBytesOf(setting).gradient;
  return {host.linkLatency + owned(gradient) / host.link,
          owned(usual.traffic + gradient - usual.gradient) / rate,
          host.linkLatency + owned(parameter.elementBytes) / host.link};
}

Bytes tiedGradientBytes(const Parameter &parameter, const ParameterState &state,
                        const Setting &setting) {
  return Bytes{localBytes(parameter.shape,
                          setting.padsShards ? state.stored : state.owned(),
                          stateBytesOf(setting).gradient, setting.mesh)};
}

double sumBytes(const Parameter &parameter, const ParameterState &state,
                const Setting &setting) {
  return localBytes(parameter.shape, accumulatorLayout(state, setting.mesh), 1,
                    setting.mesh) *
         stateBytesOf(setting).gradient;
}

double bucketBytes(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting) {
  int replicas = 1;
  for (int axis = 0; axis < tensorAxisOf(setting.mesh); ++axis)
    replicas *= setting.mesh.axes[at(axis)].size;
  return replicas > 1
             ? localBytes(parameter.shape, state.stored,
                          setting.software->memory.buckets, setting.mesh)
             : 0.0;
}

double earlyScatterBytes(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting) {
  const Mesh &mesh = setting.mesh;
  if (!setting.scattersEarly || parameter.shared)
    return 0.0;
  Layout layout = accumulatorLayout(state, mesh);
  for (int axis = 0; axis < tensorAxisOf(mesh); ++axis)
    if (const int dim = placementOf(state.owned(), axis);
        dim >= 0 && placementOf(layout, axis) == kPartial &&
        roleOf(mesh.axes[at(axis)]) == AxisRole::data)
      return localBytes(parameter.shape, withPlacement(layout, axis, dim), 1,
                        mesh) *
             stateBytesOf(setting).gradient;
  return 0.0;
}

Seconds reportedReduction(const Tensor &tensor, const Layout &made,
                          const Setting &setting) {
  return reshardTime(made, Layout::replicated(tensor.shape.size()),
                     tensor.shape, kReportedBytes, setting.mesh,
                     *setting.machine);
}

OnceTraffic onceTraffic(const Parameter &parameter, const ParameterState &state,
                        const Setting &setting) {
  return {
      stateReshardTime(state.owned(), state.stored, parameter.shape,
                       parameter.elementBytes, setting, parameter.ofSegment),
      stateReshardTime(accumulatorLayout(state, setting.mesh), state.owned(),
                       parameter.shape, stateBytesOf(setting).gradient, setting,
                       parameter.ofSegment)};
}

Cost parameterCost(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting, bool pays,
                   const SumWeights &weights) {
  if (!pays) {
    Cost own;
    own.memory = sumBytes(parameter, state, setting);
    return own;
  }
  StateBytes perElement = stateBytesOf(setting);
  const Mesh &mesh = setting.mesh;
  double stored = localBytes(parameter.shape, state.stored, 1, mesh);
  double owned = localBytes(parameter.shape, state.owned(), 1, mesh);
  Cost cost;
  const OnceTraffic once = onceTraffic(parameter, state, setting);
  Seconds time =
      weights.reduceOnce * once.reduce + weights.gatherOnce * once.gather;
  if (setting.updateAddsUp)
    time += weights.update * updateTime(parameter, state, setting);
  if (setting.hostAddsUp)
    time += weights.update * hostTimes(parameter, state, setting).total();
  cost.time = time.value;
  cost.memory = stored * parameter.elementBytes + owned * perElement.optimizer +
                bucketBytes(parameter, state, setting) +
                sumBytes(parameter, state, setting);
  return cost;
}

} // namespace mtplan::planner

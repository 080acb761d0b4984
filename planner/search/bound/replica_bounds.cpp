//===- replica_bounds.cpp - Lower bounds of parameters' traffic -----------===//

#include "planner/search/bound/replica_bounds.h"

#include <algorithm>

#include "planner/integers.h"
#include "planner/search/segment/parameter_state.h"
#include "planner/search/segment/reshard_prices.h"

namespace mtplan::planner {

namespace {

/// Keeps the least of several times. The value is +infinity if there are none.
struct Least {
  Seconds value{kInfinity};
  void add(Seconds other) { value = std::min(value, other); }
  Seconds orZero() const {
    return value.value == kInfinity ? Seconds{} : value;
  }
};

// Returns a lower bound of the time to reduce a segment's reported scalars once
// a step. The scalars are sums over samples and positions.
Seconds reportedTime(const SegmentGraph &segment, const Setting &setting) {
  Seconds time;
  for (int t : segment.reported)
    for (const Op &op : segment.ops) {
      if (std::ranges::none_of(op.results,
                               [&](const Use &use) { return use.tensor == t; }))
        continue;
      Layout made = Layout::replicated(segment.tensors[at(t)].shape.size());
      for (int axis = 0; axis < tensorAxisOf(setting.mesh); ++axis)
        for (const Factor &factor : op.factors)
          if (const int ranks = setting.mesh.axes[at(axis)].size;
              ranks > 1 && factor.divisible &&
              (factor.split == Split::batch || factor.size % ranks == 0) &&
              contains(setting.rules[at(axis)].splits, factor.split))
            made = withPlacement(made, axis, kPartial);
      time += reportedReduction(segment.tensors[at(t)], made, setting);
    }
  return time;
}

} // namespace

std::ptrdiff_t readersIn(Phase phase, const SegmentGraph &segment,
                         const Tensor &tensor) {
  const auto index = static_cast<int>(&tensor - segment.tensors.data());
  return std::ranges::count_if(segment.ops, [&](const Op &op) {
    return op.phase == phase &&
           std::ranges::any_of(op.operands, [&](const Use &use) {
             return use.tensor == index;
           });
  });
}

ReplicaBounds::ReplicaBounds(const ModelGraph &theModel)
    : model(theModel), sharing(model.segments.size()) {
  auto reads = [&](const SegmentGraph &segment, int parameter) {
    return std::ranges::any_of(segment.tensors, [&](const Tensor &tensor) {
      return tensor.kind == TensorKind::parameter &&
             tensor.parameter == parameter;
    });
  };
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    for (std::size_t s = 0; s < model.segments.size(); ++s)
      for (std::size_t other = 0; other < s; ++other)
        if (const auto parameter = static_cast<int>(p);
            model.parameters[p].shared && reads(model.segments[s], parameter) &&
            reads(model.segments[other], parameter))
          sharing[s].push_back(other);
}

// Returns the times of a segment's parameters: each time is, per parameter, the
// least over all of the parameter's states.
PhaseTimes ReplicaBounds::timesOf(const SegmentGraph &segment,
                                  const Setting &setting,
                                  std::vector<bool> &paid) const {
  PhaseTimes times;
  times.reduceStep = reportedTime(segment, setting);
  const Mesh &mesh = setting.mesh;
  const std::vector<int> tensorAxes = tensorAxesOf(mesh);
  std::vector<bool> seen(model.parameters.size(), false);
  for (const Tensor &tensor : segment.tensors) {
    if (tensor.kind != TensorKind::parameter || seen[at(tensor.parameter)])
      continue;
    seen[at(tensor.parameter)] = true;
    const Parameter &parameter = model.parameters[at(tensor.parameter)];
    Least gather, reduce, gatherStep, reduceStep, update, accumulation;
    Least down, hostUpdate, up;
    bool splitsOverTensor = false;
    for (const ParameterState &state :
         parameterStates(model, tensor.parameter, setting)) {
      Layout accumulator = accumulatorLayout(state, mesh);
      Layout gatheredLayout = gathered(state.stored, mesh);
      splitsOverTensor |= std::ranges::all_of(tensorAxes, [&](int axis) {
        return placementOf(gatheredLayout, axis) >= 0;
      });
      auto between = [&](const Layout &from, const Layout &to) {
        return stateReshardTime(from, to, parameter.shape,
                                parameter.elementBytes, setting);
      };
      gather.add(between(state.stored, gatheredLayout));
      reduce.add(between(gradientLayout(state, mesh), accumulator));
      const OnceTraffic once = onceTraffic(parameter, state, setting);
      reduceStep.add(once.reduce);
      gatherStep.add(once.gather);
      update.add(updateTime(parameter, state, setting));
      HostTimes host = hostTimes(parameter, state, setting);
      down.add(host.down);
      hostUpdate.add(host.update);
      up.add(host.up);
      accumulation.add(accumulationTime(parameter, state, setting) /
                       static_cast<double>(setting.microBatches));
    }
    // The weight may stay sharded over samples, positions or experts, or be
    // sliced over the tensor axes before it is gathered, so only the share that
    // every plan moves counts.
    double moved = splitsWithData(parameter) ? 0.0
                   : splitsOverTensor        ? 1.0
                                             : 1.0 / tensorRanksOf(mesh);
    if (readersIn(Phase::forward, segment, tensor) > 0)
      times.gatherForward += moved * gather.orZero();
    if (readersIn(Phase::backward, segment, tensor) > 0)
      times.gatherBackward += moved * gather.orZero();
    for (const Accumulation &sum : segment.accumulations)
      if (sum.parameter == tensor.parameter) {
        times.reduce += moved * reduce.orZero();
        times.backward.compute += accumulation.orZero();
      }
    if (parameter.shared && paid[at(tensor.parameter)])
      continue;
    paid[at(tensor.parameter)] = true;
    // The cost of a shared parameter is divided among the repeats.
    const double share = parameter.shared ? 1.0 / segment.repeat : 1.0;
    times.reduceStep += reduceStep.orZero() * share;
    times.gatherStep += gatherStep.orZero() * share;
    times.update += update.orZero() * share;
    times.host.down += down.orZero() * share;
    times.host.update += hostUpdate.orZero() * share;
    times.host.up += up.orZero() * share;
  }
  return times;
}

const ReplicaBounds::Times &ReplicaBounds::of(const Parallelism &config,
                                              const Setting &setting) {
  auto [entry, isNew] = known.try_emplace(
      {config.tp, config.tp2, config.cp, config.ep, config.dp, config.zeroStage,
       config.zeroRanks, config.microBatches(),
       static_cast<std::int64_t>(config.offload)});
  if (isNew) {
    Times &times = entry->second;
    const std::vector<bool> none(model.parameters.size(), false);
    std::vector<bool> paid = none;
    for (std::size_t s = 0; s < model.segments.size(); ++s) {
      times.together.push_back(timesOf(model.segments[s], setting, paid));
      std::vector<bool> unpaid = none;
      times.apart.push_back(sharing[s].empty()
                                ? times.together.back()
                                : timesOf(model.segments[s], setting, unpaid));
    }
  }
  return entry->second;
}

std::vector<PhaseTimes>
ReplicaBounds::inStage(const Times &all,
                       const std::vector<PipelinePart> &parts) const {
  std::vector<bool> held(model.segments.size(), false);
  for (const PipelinePart &part : parts)
    for (const RepeatRange &range : part)
      held[at(range.segment)] = true;
  std::vector<PhaseTimes> times = all.together;
  for (std::size_t s = 0; s < times.size(); ++s)
    if (std::ranges::none_of(sharing[s],
                             [&](std::size_t other) { return held[other]; }))
      times[s] = all.apart[s];
  return times;
}

} // namespace mtplan::planner

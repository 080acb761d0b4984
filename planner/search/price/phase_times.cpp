//===- phase_times.cpp - Times of one repeat of a segment, by phase -------===//

#include "planner/search/price/phase_times.h"

#include <algorithm>

#include "planner/cost/compute_cost.h"
#include "planner/index.h"
#include "planner/search/space/recompute.h"
#include "planner/search/space/tiling.h"

namespace mtplan::planner {

namespace {

class Summation {
public:
  Summation(const ModelGraph &graph, const SegmentPlan &p, const Setting &s)
      : model(graph), segment(graph.segments[at(p.segment)]), plan(p),
        setting(s), isGradient(segment.tensors.size(), false),
        opRecomputed(recomputedOps(segment, s.recompute, *s.software)),
        tensorRecomputed(recomputedTensors(segment, s.recompute, *s.software)),
        runs(opRunsOf(graph, segment, s)),
        tiles(tilesOfTensors(graph, segment, s)) {
    for (const Accumulation &sum : segment.accumulations)
      isGradient[at(sum.tensor)] = true;
  }

  PhaseTimes run(std::vector<bool> &paid) {
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      addOperator(o);
    for (const PlannedConversion &conversion : plan.conversions)
      addConversion(conversion);
    for (const Accumulation &sum : segment.accumulations) {
      Seconds readBack =
          accumulationTime(model.parameters[at(sum.parameter)],
                           *plan.parameters[at(sum.parameter)], setting) /
          static_cast<double>(setting.microBatches);
      times.backward.compute += readBack;
      times.weightGradient += readBack;
    }
    for (int t : segment.reported) {
      const Tensor &tensor = segment.tensors[at(t)];
      times.reduceStep += reshardTime(
          *plan.made[at(t)], Layout::replicated(tensor.shape.size()),
          tensor.shape, tensor.elementBytes, setting.mesh, *setting.machine);
    }
    for (std::size_t p = 0; p < plan.parameters.size(); ++p)
      if (plan.parameters[p] && !(model.parameters[p].shared && paid[p])) {
        paid[p] = true;
        // All repeats together pay once for what they share.
        addParameter(model.parameters[p], *plan.parameters[p],
                     model.parameters[p].shared ? 1.0 / plan.count : 1.0);
      }
    return times;
  }

private:
  void addOperator(std::size_t o) {
    const Op &op = segment.ops[o];
    Seconds time = operatorTime(segment, plan, o, runs[o], setting);
    partsOf(op.phase).compute += time;
    if (opRecomputed[o])
      times.backward.compute += time * setting.recomputeShare;
    if (op.phase == Phase::backward &&
        std::ranges::all_of(op.results, [&](const Use &result) {
          return isGradient[at(result.tensor)];
        }))
      times.weightGradient += time;
  }

  void addConversion(const PlannedConversion &conversion) {
    const Tensor &tensor = segment.tensors[at(conversion.tensor)];
    bool forward = conversion.phase == Phase::forward;
    std::vector<std::int64_t> local =
        localShape(tensor.shape, conversion.from, setting.mesh);
    for (const ReshardStep &step :
         reshardSteps(conversion.from, conversion.to)) {
      bool passed = tensor.kind == TensorKind::activation &&
                    !isGradient[at(conversion.tensor)];
      Seconds time = passed ? exposedTime(step, local, tensor.elementBytes,
                                          conversion.phase, setting)
                            : stateTime(step, local, tensor.elementBytes,
                                        setting, tiles[at(conversion.tensor)]);
      local = localShape(tensor.shape, step.result, setting.mesh);
      AxisRole role = roleOf(setting.mesh.axes[at(step.axis)]);
      Seconds PhaseParts::*part =
          !isCollective(step.kind)    ? &PhaseParts::local
          : role == AxisRole::tensor  ? &PhaseParts::tensor
          : role == AxisRole::context ? &PhaseParts::context
                                      : &PhaseParts::exchange;
      bool ofReplicas =
          part == &PhaseParts::context || part == &PhaseParts::exchange;
      if (ofReplicas && tensor.kind == TensorKind::parameter) {
        (forward ? times.gatherForward : times.gatherBackward) += time;
      } else if (ofReplicas && isGradient[at(conversion.tensor)]) {
        times.reduce += time;
      } else {
        partsOf(conversion.phase).*part += time;
        if (forward && tensorRecomputed[at(conversion.tensor)])
          times.backward.*part += time * setting.recomputeShare;
      }
    }
  }

  void addParameter(const Parameter &parameter, const ParameterState &state,
                    double share) {
    const Mesh &mesh = setting.mesh;
    StateBytes perElement = stateBytesOf(setting);
    times.reduceStep +=
        stateReshardTime(accumulatorLayout(state, mesh), state.owned(),
                         parameter.shape, perElement.gradient, setting,
                         parameter.ofSegment) *
        share;
    times.gatherStep +=
        stateReshardTime(state.owned(), state.stored, parameter.shape,
                         parameter.elementBytes, setting, parameter.ofSegment) *
        share;
    times.update += updateTime(parameter, state, setting) * share;
    times.squares += squaresTime(parameter, state, setting) * share;
    HostTimes host = hostTimes(parameter, state, setting);
    times.host.down += host.down * share;
    times.host.update += host.update * share;
    times.host.up += host.up * share;
  }

  PhaseParts &partsOf(Phase phase) {
    return phase == Phase::forward ? times.forward : times.backward;
  }

  const ModelGraph &model;
  const SegmentGraph &segment;
  const SegmentPlan &plan;
  const Setting &setting;
  std::vector<bool> isGradient; ///< by tensor
  std::vector<bool> opRecomputed, tensorRecomputed;
  std::vector<OpRun> runs; ///< by operator
  std::vector<int> tiles;  ///< by tensor
  PhaseTimes times;
};

} // namespace

Seconds operatorTime(const SegmentGraph &segment, const SegmentPlan &plan,
                     std::size_t o, const OpRun &run, const Setting &setting) {
  const Op &op = segment.ops[o];
  const Strategy &strategy = plan.strategies[o];
  Seconds time = computeTime(op, run, strategy, segment.tensors, setting.mesh,
                             *setting.machine, *setting.software);
  if (run.savedPasses > 0)
    time += apartTime(op, run, strategy,
                      *plan.made[at(op.operands[at(op.fusedOperand)].tensor)],
                      segment.tensors, setting.mesh, *setting.machine,
                      *setting.software);
  return time;
}

PhaseTimes phaseTimesOf(const ModelGraph &model, const SegmentPlan &plan,
                        const Setting &setting, std::vector<bool> &paid) {
  return Summation(model, plan, setting).run(paid);
}

std::map<std::string, Seconds> kindTimesOf(const ModelGraph &model,
                                           const SegmentPlan &plan,
                                           const Setting &setting) {
  const SegmentGraph &segment =
      model.segments[static_cast<std::size_t>(plan.segment)];
  const std::vector<OpRun> runs = opRunsOf(model, segment, setting);
  const std::vector<bool> recomputed =
      recomputedOps(segment, setting.recompute, *setting.software);
  std::map<std::string, Seconds> times;
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const Op *maker = fusedProducer(segment, plan, static_cast<int>(o));
    times[maker ? maker->kind : segment.ops[o].kind] +=
        operatorTime(segment, plan, o, runs[o], setting) *
        (1.0 + (recomputed[o] ? setting.recomputeShare : 0.0));
  }
  for (const Accumulation &sum : segment.accumulations) {
    const auto parameter = static_cast<std::size_t>(sum.parameter);
    times["accumulate"] +=
        accumulationTime(model.parameters[parameter],
                         *plan.parameters[parameter], setting) /
        static_cast<double>(setting.microBatches);
  }
  return times;
}

} // namespace mtplan::planner

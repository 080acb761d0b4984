//===- phase_times.cpp - Times and collectives, by phase ------------------===//

#include "planner/search/price/phase_times.h"

#include <algorithm>

#include "planner/cost/compute_cost.h"
#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"

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
    for (int t : segment.reported)
      times.reduceStep +=
          reportedReduction(segment.tensors[at(t)], *plan.made[at(t)], setting);
    for (std::size_t p = 0; p < plan.parameters.size(); ++p)
      if (plan.parameters[p] && !(model.parameters[p].shared && paid[p])) {
        paid[p] = true;
        // The cost of a shared parameter is divided among the repeats.
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
    if (makesWeightGradients(segment, op))
      times.weightGradient += time;
    addLaunches(
        op.phase, opRecomputed[o],
        launchesOf(op, runs[o], setting.machine->device, *setting.software) *
            setting.software->host.kernel);
  }

  void addLaunches(Phase phase, bool recomputed, Seconds time) {
    (phase == Phase::forward ? times.launchForward : times.launchBackward) +=
        time;
    if (recomputed)
      times.launchBackward += time * setting.recomputeShare;
  }

  void addConversion(const PlannedConversion &conversion) {
    const Tensor &tensor = segment.tensors[at(conversion.tensor)];
    bool forward = conversion.phase == Phase::forward;
    bool gradient = isGradient[at(conversion.tensor)];
    bool passed = tensor.kind == TensorKind::activation && !gradient;
    forEachStep(
        conversion.from, conversion.to, tensor.shape, setting.mesh,
        [&](const StepMove &step, double elements) {
          Seconds time = passed
                             ? exposedTime(step, elements, tensor.elementBytes,
                                           conversion.phase, setting)
                             : stateTime(step, elements, tensor.elementBytes,
                                         setting, tiles[at(conversion.tensor)]);
          AxisRole role = roleOf(setting.mesh.axes[at(step.axis)]);
          Seconds PhaseParts::*part =
              !isCollective(step.kind)    ? &PhaseParts::local
              : role == AxisRole::tensor  ? &PhaseParts::tensor
              : role == AxisRole::context ? &PhaseParts::context
                                          : &PhaseParts::exchange;
          addLaunches(conversion.phase,
                      forward && tensorRecomputed[at(conversion.tensor)],
                      launchTime(step));
          bool ofReplicas =
              part == &PhaseParts::context || part == &PhaseParts::exchange;
          if (ofReplicas && tensor.kind == TensorKind::parameter) {
            (forward ? times.gatherForward : times.gatherBackward) += time;
          } else if (ofReplicas && gradient) {
            times.reduce += time;
          } else {
            partsOf(conversion.phase).*part += time;
            if (forward && tensorRecomputed[at(conversion.tensor)])
              times.backward.*part += time * setting.recomputeShare;
          }
        });
  }

  void addParameter(const Parameter &parameter, const ParameterState &state,
                    double share) {
    const OnceTraffic once = onceTraffic(parameter, state, setting);
    times.reduceStep += once.reduce * share;
    times.gatherStep += once.gather * share;
    times.update += updateTime(parameter, state, setting) * share;
    times.squares += squaresTime(parameter, state, setting) * share;
    HostTimes host = hostTimes(parameter, state, setting);
    times.host.down += host.down * share;
    times.host.update += host.update * share;
    times.host.up += host.up * share;
  }

  Seconds launchTime(const StepMove &step) const {
    const HostLaunch &host = setting.software->host;
    if (!isCollective(step.kind))
      return host.kernel;
    const int size = setting.mesh.axes[at(step.axis)].size;
    const bool isPipelined = setting.devices > setting.mesh.ranks();
    const bool spansNodes =
        size * setting.mesh.stride(step.axis) > setting.machine->devicesPerNode;
    Seconds perRank;
    if (isPipelined)
      perRank =
          spansNodes ? host.perRankPipelinedAcrossNodes : host.perRankPipelined;
    else if (spansNodes)
      perRank = host.perRankAcrossNodes;
    return host.collective + size * perRank;
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

// Adds an entry, or adds its counts to those of an equal entry.
void record(LedgerEntry added, std::vector<LedgerEntry> &entries) {
  for (LedgerEntry &entry : entries)
    if (entry.kind == added.kind && entry.axis == added.axis &&
        entry.bytes == added.bytes && entry.cause == added.cause &&
        entry.segment == added.segment) {
      entry.perStep += added.perStep;
      entry.perMicroBatch += added.perMicroBatch;
      return;
    }
  entries.push_back(std::move(added));
}

} // namespace

Seconds operatorTime(const SegmentGraph &segment, const SegmentPlan &plan,
                     std::size_t o, const OpRun &run, const Setting &setting) {
  const Op &op = segment.ops[o];
  const Strategy &strategy = plan.strategies[o];
  Seconds time = computeTime(op, run, strategy, segment.tensors, setting.mesh,
                             *setting.machine, *setting.software);
  if (run.savedPasses > 0)
    time += unfusedTime(op, run, strategy,
                        *plan.made[at(op.operands[at(op.fusedOperand)].tensor)],
                        segment.tensors, setting.mesh, *setting.machine,
                        *setting.software);
  return time;
}

Seconds leastWeightGradients(const ModelGraph &model, int segment,
                             const Setting &setting) {
  const SegmentGraph &graph = model.segments[at(segment)];
  const std::vector<OpRun> runs = opRunsOf(model, graph, setting);
  Seconds all;
  for (std::size_t o = 0; o < graph.ops.size(); ++o) {
    if (!makesWeightGradients(graph, graph.ops[o]))
      continue;
    Seconds least{kInfinity};
    for (const Strategy &strategy :
         strategiesOf(graph.ops[o], setting.mesh, setting.rules))
      least = std::min(least, computeTime(graph.ops[o], runs[o], strategy,
                                          graph.tensors, setting.mesh,
                                          *setting.machine, *setting.software));
    if (least.value < kInfinity)
      all += least;
  }
  return all;
}

PhaseTimes phaseTimesOf(const ModelGraph &model, const SegmentPlan &plan,
                        const Setting &setting, std::vector<bool> &paid) {
  return Summation(model, plan, setting).run(paid);
}

std::map<std::string, Seconds> kindTimesOf(const ModelGraph &model,
                                           const SegmentPlan &plan,
                                           const Setting &setting) {
  const SegmentGraph &segment = model.segments[at(plan.segment)];
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
    times["accumulate"] +=
        accumulationTime(model.parameters[at(sum.parameter)],
                         *plan.parameters[at(sum.parameter)], setting) /
        static_cast<double>(setting.microBatches);
  }
  return times;
}

const char *nameOf(LedgerPhase phase) {
  constexpr const char *kNames[] = {"forward", "backward", "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::vector<LedgerEntry> ledgerOf(const ModelGraph &model,
                                  const std::vector<SegmentPlan> &plans,
                                  const Setting &setting) {
  std::vector<LedgerEntry> phases[3]; // by phase, in program order
  std::vector<bool> paid(model.parameters.size(), false);
  double gradientBytes = stateBytesOf(setting).gradient;
  for (const SegmentPlan &plan : plans) {
    const SegmentGraph &segment = model.segments[at(plan.segment)];
    auto emit = [&](const Layout &from, const Layout &to,
                    const std::vector<std::int64_t> &shape, double elementBytes,
                    bool ofState, LedgerPhase phase, const std::string &cause,
                    std::int64_t times, int tiles = 1, double ofSegment = 1.0) {
      forEachStep(from, to, shape, setting.mesh,
                  [&](const StepMove &step, double elements) {
                    if (!isCollective(step.kind))
                      return;
                    Bytes bytes{elements * elementBytes};
                    Seconds seconds =
                        ofState ? stateTime(step, elements, elementBytes,
                                            setting, tiles, ofSegment)
                                : stepTime(step, elements, elementBytes,
                                           setting.mesh, *setting.machine);
                    // Replicas exchange each tile in a separate message.
                    bool untiled = roleOf(setting.mesh.axes[at(step.axis)]) ==
                                   AxisRole::tensor;
                    int parts = untiled ? 1 : tiles;
                    std::int64_t perMicroBatch =
                        phase == LedgerPhase::update
                            ? 0
                            : times * parts / setting.microBatches;
                    record({step.kind, step.axis, bytes / parts, phase, cause,
                            segment.name, perMicroBatch, times * parts,
                            seconds / parts},
                           phases[static_cast<int>(phase)]);
                  });
    };
    std::vector<int> tiles = tilesOfTensors(model, segment, setting);
    std::vector<bool> recomputed =
        recomputedTensors(segment, setting.recompute, *setting.software);
    for (const PlannedConversion &conversion : plan.conversions) {
      const Tensor &tensor = segment.tensors[at(conversion.tensor)];
      bool ofState = tensor.kind == TensorKind::parameter ||
                     isAccumulated(segment, conversion.tensor);
      bool forward = conversion.phase == Phase::forward;
      auto convert = [&](LedgerPhase phase) {
        emit(conversion.from, conversion.to, tensor.shape, tensor.elementBytes,
             ofState, phase, tensor.name, setting.microBatches * plan.count,
             tiles[at(conversion.tensor)]);
      };
      convert(forward ? LedgerPhase::forward : LedgerPhase::backward);
      // Backward repeats the layout change of a value that it recomputes.
      if (forward && recomputed[at(conversion.tensor)])
        convert(LedgerPhase::backward);
    }
    for (int t : segment.reported) {
      const Tensor &tensor = segment.tensors[at(t)];
      emit(*plan.made[at(t)], Layout::replicated(tensor.shape.size()),
           tensor.shape, kReportedBytes, false, LedgerPhase::update,
           tensor.name, plan.count);
    }
    for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
      if (!plan.parameters[p])
        continue;
      const Parameter &parameter = model.parameters[p];
      if (parameter.shared && paid[p])
        continue;
      paid[p] = true;
      const ParameterState &state = *plan.parameters[p];
      int repeats = parameter.shared ? 1 : plan.count;
      emit(accumulatorLayout(state, setting.mesh), state.owned(),
           parameter.shape, gradientBytes, true, LedgerPhase::update,
           parameter.name, repeats, 1, parameter.ofSegment);
      emit(state.owned(), state.stored, parameter.shape, parameter.elementBytes,
           true, LedgerPhase::update, parameter.name, repeats, 1,
           parameter.ofSegment);
    }
  }
  std::vector<LedgerEntry> ledger;
  for (auto &entries : phases)
    ledger.insert(ledger.end(), entries.begin(), entries.end());
  return ledger;
}

void StepTime::add(const PhaseTimes &phases, double times) {
  for (const PhaseParts *parts : {&phases.forward, &phases.backward}) {
    compute += parts->compute * times;
    local += parts->local * times;
    tensor += parts->tensor * times;
    context += parts->context * times;
    exchange += parts->exchange * times;
  }
}

} // namespace mtplan::planner

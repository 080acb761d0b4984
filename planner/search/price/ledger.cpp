//===- ledger.cpp - Every collective of a plan, and its time --------------===//

#include "planner/search/price/ledger.h"

#include <algorithm>

#include "planner/index.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/space/recompute.h"
#include "planner/search/space/tiling.h"

namespace mtplan::planner {

const char *nameOf(LedgerPhase phase) {
  switch (phase) {
  case LedgerPhase::forward:
    return "forward";
  case LedgerPhase::backward:
    return "backward";
  case LedgerPhase::update:
    return "update";
  }
  return "?";
}

namespace {

// Calls `step(ReshardStep, bytes passed in, seconds)` for each step of a layout
// change.
template <typename Visit>
void forEachStep(const Layout &from, const Layout &to,
                 const std::vector<std::int64_t> &shape, double elementBytes,
                 bool ofState, const Setting &setting, int tiles,
                 double ofSegment, Visit visit) {
  std::vector<std::int64_t> local = localShape(shape, from, setting.mesh);
  for (const ReshardStep &step : reshardSteps(from, to)) {
    double bytes = elementBytes;
    for (std::int64_t size : local)
      bytes *= static_cast<double>(size);
    visit(step, Bytes{bytes},
          ofState
              ? stateTime(step, local, elementBytes, setting, tiles, ofSegment)
              : stepTime(step, local, elementBytes, setting.mesh,
                         *setting.machine));
    local = localShape(shape, step.result, setting.mesh);
  }
}

// Calls `visit(step, bytes, seconds, phase, cause, plan, times per step)` for
// every layout change of every repeat of every run.
template <typename Visit>
void forEachConversion(const ModelGraph &model,
                       const std::vector<SegmentPlan> &plans,
                       const Setting &setting, Visit visit) {
  std::vector<bool> paid(model.parameters.size(), false);
  double gradientBytes = stateBytesOf(setting).gradient;
  for (const SegmentPlan &plan : plans) {
    const SegmentGraph &segment = model.segments[at(plan.segment)];
    auto emit = [&](const Layout &from, const Layout &to,
                    const std::vector<std::int64_t> &shape, double elementBytes,
                    bool ofState, LedgerPhase phase, const std::string &cause,
                    std::int64_t times, int tiles = 1, double ofSegment = 1.0) {
      forEachStep(from, to, shape, elementBytes, ofState, setting, tiles,
                  ofSegment,
                  [&](const ReshardStep &step, Bytes bytes, Seconds seconds) {
                    // Between replicas each tile is sent on its own.
                    bool untiled = roleOf(setting.mesh.axes[at(step.axis)]) ==
                                   AxisRole::tensor;
                    int parts = untiled ? 1 : tiles;
                    visit(step, bytes / parts, seconds / parts, phase, cause,
                          segment.name, times * parts);
                  });
    };
    std::vector<int> tiles = tilesOfTensors(model, segment, setting);
    std::vector<bool> recomputed =
        recomputedTensors(segment, setting.recompute, *setting.software);
    for (const PlannedConversion &conversion : plan.conversions) {
      const Tensor &tensor = segment.tensors[at(conversion.tensor)];
      bool ofState = tensor.kind == TensorKind::parameter ||
                     std::ranges::find(segment.accumulations, conversion.tensor,
                                       &Accumulation::tensor) !=
                         segment.accumulations.end();
      bool forward = conversion.phase == Phase::forward;
      auto convert = [&](LedgerPhase phase) {
        emit(conversion.from, conversion.to, tensor.shape, tensor.elementBytes,
             ofState, phase, tensor.name, setting.microBatches * plan.count,
             tiles[at(conversion.tensor)]);
      };
      convert(forward ? LedgerPhase::forward : LedgerPhase::backward);
      // Backward repeats the layout change where it recomputes the value.
      if (forward && recomputed[at(conversion.tensor)])
        convert(LedgerPhase::backward);
    }
    for (int t : segment.reported) {
      const Tensor &tensor = segment.tensors[at(t)];
      emit(*plan.made[at(t)], Layout::replicated(tensor.shape.size()),
           tensor.shape, tensor.elementBytes, false, LedgerPhase::update,
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
}

} // namespace

std::vector<LedgerEntry> ledgerOf(const ModelGraph &model,
                                  const std::vector<SegmentPlan> &plans,
                                  const Setting &setting) {
  // Keeps program order within a phase, the update last; equal entries are
  // merged.
  std::vector<LedgerEntry> phases[3];
  forEachConversion(
      model, plans, setting,
      [&](const ReshardStep &step, Bytes bytes, Seconds seconds,
          LedgerPhase phase, const std::string &cause,
          const std::string &segment, std::int64_t times) {
        if (!isCollective(step.kind))
          return;
        auto &entries = phases[static_cast<int>(phase)];
        std::int64_t perMicroBatch =
            phase == LedgerPhase::update ? 0 : times / setting.microBatches;
        for (LedgerEntry &entry : entries)
          if (entry.kind == step.kind && entry.axis == step.axis &&
              entry.bytes == bytes && entry.cause == cause &&
              entry.segment == segment) {
            entry.perStep += times;
            entry.perMicroBatch += perMicroBatch;
            return;
          }
        entries.push_back({step.kind, step.axis, bytes, phase, cause, segment,
                           perMicroBatch, times, seconds});
      });
  std::vector<LedgerEntry> ledger;
  for (auto &entries : phases)
    ledger.insert(ledger.end(), entries.begin(), entries.end());
  return ledger;
}

StepTime stepTimeOf(const ModelGraph &model,
                    const std::vector<SegmentPlan> &plans,
                    const Setting &setting) {
  StepTime time;
  std::vector<bool> paid(model.parameters.size(), false);
  for (const SegmentPlan &plan : plans) {
    PhaseTimes phases = phaseTimesOf(model, plan, setting, paid);
    double repeats = plan.count;
    double times = repeats * static_cast<double>(setting.microBatches);
    for (const PhaseParts *parts : {&phases.forward, &phases.backward}) {
      time.compute += parts->compute * times;
      time.local += parts->local * times;
      time.tensor += parts->tensor * times;
      time.context += parts->context * times;
      time.exchange += parts->exchange * times;
    }
    time.data +=
        (phases.gatherForward + phases.gatherBackward + phases.reduce) * times +
        (phases.reduceStep + phases.gatherStep) * repeats;
    time.update += phases.update * repeats;
    time.host += phases.host.total() * repeats;
  }
  time.step = time.compute + time.local + time.tensor + time.context +
              time.exchange + time.data + time.update + time.host;
  return time;
}

} // namespace mtplan::planner

//===- plan_facts.cpp - Facts of a plan, for all reports ------------------===//

#include "tools/report/plan_facts.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "planner/integers.h"
#include "planner/search/segment/parameter_state.h"
#include "planner/search/segment/reshard_prices.h"
#include "planner/search/solve_candidate.h"
#include "planner/search/space/pins.h"
#include "planner/search/space/segment_runs.h"
#include "tools/driver/plan_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::at;
using planner::PlannedCandidate;
using planner::ScheduleKind;

namespace {

RunFact runOf(const PlanFacts &facts, const planner::SegmentPlan &plan) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(plan.segment)];
  const planner::Mesh &mesh = facts.setting.mesh;
  RunFact run{segment.name, plan.first, plan.count, isLayer(segment),
              {},           {},         {}};
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const planner::Op &op = segment.ops[o];
    planner::Layout layout = planner::resultLayout(op, plan.strategies[o], 0);
    run.ops.push_back(
        {op.name, op.kind, planner::describe(op, plan.strategies[o], mesh),
         op.phase,
         planner::localShape(segment.tensors[at(op.results[0].tensor)].shape,
                             layout, mesh),
         planner::toString(layout, mesh)});
  }
  for (std::size_t p = 0; p < plan.parameters.size(); ++p)
    if (plan.parameters[p]) {
      const planner::Parameter &parameter = facts.graph.parameters[p];
      const planner::ParameterState &state = *plan.parameters[p];
      run.parameters.push_back(
          {parameter.name,
           planner::toString(state.stored, mesh),
           planner::localShape(parameter.shape, state.stored, mesh),
           parameter.shape,
           {planner::localBytes(parameter.shape, state.stored,
                                parameter.elementBytes, mesh)},
           !state.reducedOncePerStep.empty()});
    }
  run.collectives = planner::ledgerOf(facts.graph, {plan}, facts.setting);
  return run;
}

bool usesSequenceSplit(const PlanFacts &facts, const PlannedCandidate &plan) {
  for (const planner::SegmentPlan &run : plan.plans()) {
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (segment.ops[o].opClass == planner::OpClass::memory &&
          segment.ops[o].phase == planner::Phase::forward &&
          planner::contains(planner::partsOfValue(planner::wordOf(
                                segment.ops[o], run.strategies[o],
                                planner::tensorAxisOf(facts.setting.mesh))),
                            std::string("sequence")))
        return true;
  }
  return false;
}

// The stages' collectives are counted one stage at a time, because every stage
// that uses a tied weight stores it.
std::vector<planner::LedgerEntry>
collectivesOf(const PlanFacts &facts, const PlannedCandidate &candidate) {
  std::vector<planner::LedgerEntry> all;
  for (int stage = 0; stage < candidate.config.pp; ++stage) {
    std::vector<planner::SegmentPlan> plans;
    for (std::size_t part = 0; part < candidate.parts.size(); ++part)
      if (static_cast<int>(part) % candidate.config.pp == stage)
        plans.insert(plans.end(), candidate.parts[part].begin(),
                     candidate.parts[part].end());
    for (planner::LedgerEntry &entry :
         planner::ledgerOf(facts.graph, plans, facts.setting)) {
      auto known = std::ranges::find_if(all, [&](const auto &other) {
        return entry.kind == other.kind && entry.axis == other.axis &&
               entry.bytes == other.bytes && entry.phase == other.phase &&
               entry.cause == other.cause && entry.segment == other.segment;
      });
      if (known == all.end()) {
        all.push_back(std::move(entry));
        continue;
      }
      known->perMicroBatch += entry.perMicroBatch;
      known->perStep += entry.perStep;
    }
  }
  std::ranges::stable_sort(all, {}, &planner::LedgerEntry::phase);
  return all;
}

planner::Bytes bytesOf(const PlanFacts &facts, const planner::SegmentPlan &run,
                       const std::vector<int> &tensors,
                       const std::vector<planner::Layout> &layouts) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(run.segment)];
  planner::Bytes bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const planner::Tensor &tensor = segment.tensors[at(tensors[i])];
    bytes += planner::Bytes{planner::localBytes(
        tensor.shape, layouts[i], tensor.elementBytes, facts.setting.mesh)};
  }
  return bytes;
}

/// Names a term that the published runs of docs/accuracy/throughput.csv lack.
/// The runs cover 1f1b and interleaved pipelines, tensor and context
/// parallelism, ZeRO 1 and 3, and all kinds of recomputation. No run has
/// experts, offloading, tiles or another schedule.
struct Gap {
  const char *name, *without;
  /// Points to the time that the term adds to the step; null for a schedule.
  planner::Seconds planner::StepTime::*time;
  /// No published run uses this schedule, which is compared with 1f1b.
  ScheduleKind schedule;
};
constexpr Gap kGaps[] = {
    {"the zero-bubble schedule", "as 1f1b", nullptr, ScheduleKind::zeroBubble},
    {"the gpipe schedule", "as 1f1b", nullptr, ScheduleKind::gpipe},
    {"the exchange between experts",
     "without it",
     &planner::StepTime::exchange,
     {}},
    {"offload to the host", "without it", &planner::StepTime::host, {}}};

planner::Seconds stepOf(const Problem &problem, const PlannedCandidate &plan,
                        const planner::Parallelism &config) {
  return planner::priceGiven(
             planner::withBatch(problem.graph, config.microBatch * config.dp),
             problem.options, problem.machine, config, plan.parts)
      .time.step;
}

} // namespace

PlanFacts factsOf(const Problem &problem, const PlannedCandidate &candidate) {
  PlanFacts facts;
  const planner::SearchOptions &options = problem.options;
  facts.setting =
      planner::settingOf(options, problem.machine, candidate.config);
  facts.graph = planner::withBatch(problem.graph, candidate.config.microBatch *
                                                      candidate.config.dp);
  for (const planner::SegmentPlan &plan : candidate.plans())
    facts.runs.push_back(runOf(facts, plan));
  facts.collectives = collectivesOf(facts, candidate);
  double step = candidate.time.step.value;
  facts.tokensPerSecond = static_cast<double>(options.globalBatch) *
                          static_cast<double>(facts.graph.sequence) / step;
  facts.modelRate = {facts.graph.modelFlops.value *
                     static_cast<double>(candidate.config.microBatches()) /
                     step / options.devices};
  if (auto peak = problem.machine.device.peak(options.precision))
    facts.mfu = facts.modelRate / *peak;
  facts.sequenceParallel = usesSequenceSplit(facts, candidate);
  return facts;
}

std::string tiledText(const PlanFacts &facts) {
  std::vector<int> tiles = tilesOfParameters(facts.graph, facts.setting);
  std::string text;
  for (std::size_t p = 0; p < tiles.size(); ++p)
    if (tiles[p] > 1)
      text += fmt::format("{}{} in {}", text.empty() ? "" : ", ",
                          facts.graph.parameters[p].name, tiles[p]);
  return text;
}

int nodesOf(const Problem &problem) {
  int perNode = problem.machine.devicesPerNode;
  return (problem.options.devices + perNode - 1) / perNode;
}

std::string configText(const planner::Parallelism &config) {
  std::string choices = choicesText(config);
  return meshText(config) + ", " + batchText(config) +
         (choices.empty() ? "" : ", " + choices);
}

std::vector<StageFact> stagesOf(const Problem &problem, const PlanFacts &facts,
                                const PlannedCandidate &plan) {
  const planner::StepProblem step =
      planner::stepProblemOf(facts.graph, plan.parts, facts.setting,
                             plan.config, problem.options.overlaps);
  std::vector<StageFact> stages;
  for (const planner::MemoryUse &memory : planner::memoryByStage(
           facts.graph, plan.parts, facts.setting, plan.config)) {
    const planner::StageTimes &times = step.stages[stages.size()];
    planner::Seconds busy = times.update;
    for (const planner::ChunkTimes &chunk : times.chunks)
      for (const planner::SliceTimes &slice : chunk.slices)
        busy += (slice.forward + slice.backward) *
                static_cast<double>(slice.count * step.shape.microBatches);
    stages.push_back({memory, busy});
  }
  return stages;
}

std::vector<Send> sendsOf(const Problem &problem, const PlanFacts &facts,
                          const planner::PlannedCandidate &plan) {
  std::vector<Send> sends;
  const planner::Parallelism &config = plan.config;
  if (config.pp == 1)
    return sends;
  planner::StepProblem step = planner::stepProblemOf(
      facts.graph, plan.parts, facts.setting, config, problem.options.overlaps);
  auto chunkOf = [&](int part) -> const planner::ChunkTimes & {
    return step.stages[at(part % config.pp)].chunks[at(part / config.pp)];
  };
  auto parts = static_cast<int>(plan.parts.size());
  for (int part = 0; part + 1 < parts; ++part) {
    const planner::SegmentPlan &run = plan.parts[at(part)].back();
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    sends.push_back({part, part + 1, planner::LedgerPhase::forward,
                     segment.name,
                     bytesOf(facts, run, segment.carriedOut, run.carriedOut),
                     chunkOf(part).sendForward});
  }
  for (int part = parts - 1; part > 0; --part) {
    const planner::SegmentPlan &run = plan.parts[at(part)].front();
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    sends.push_back({part, part - 1, planner::LedgerPhase::backward,
                     segment.name,
                     bytesOf(facts, run, segment.gradientOut, run.gradientOut),
                     chunkOf(part).sendBackward});
  }
  return sends;
}

std::vector<TiedSum> tiedSumsOf(const Problem &problem, const PlanFacts &facts,
                                const PlannedCandidate &plan) {
  const std::vector<planner::TiedGradient> tied = planner::tiedGradientsOf(
      facts.graph, plan.parts, facts.setting, plan.config.pp);
  std::vector<TiedSum> sums;
  if (tied.empty())
    return sums;
  planner::Bytes all;
  for (const planner::TiedGradient &one : tied)
    all += one.bytes;
  const planner::Seconds time =
      planner::stepProblemOf(facts.graph, plan.parts, facts.setting,
                             plan.config, problem.options.overlaps)
          .tied;
  sums.reserve(tied.size());
  for (const planner::TiedGradient &one : tied)
    sums.push_back({facts.graph.parameters[at(one.parameter)].name, one.stages,
                    one.bytes, time * (one.bytes / all)});
  return sums;
}

std::optional<Agreement> agreementOf(const PlanFacts &facts,
                                     const planner::PlannedCandidate &plan) {
  if (plan.config.devices() == 1)
    return std::nullopt;
  std::set<std::string> reported;
  for (const planner::SegmentGraph &segment : facts.graph.segments)
    for (int tensor : segment.reported)
      reported.insert(segment.tensors[at(tensor)].name);
  Agreement found{
      {planner::kReportedBytes * static_cast<double>(2 + reported.size())},
      "gradient norm, overflow"};
  for (const std::string &name : reported)
    found.values += ", " + name;
  return found;
}

std::map<std::string, Traffic> trafficByAxis(const Problem &problem,
                                             const PlanFacts &facts,
                                             const PlannedCandidate &plan) {
  std::map<std::string, Traffic> axes;
  auto add = [](Traffic &sum, std::int64_t times, planner::Bytes bytes,
                planner::Seconds time) {
    sum.count += times;
    sum.bytes += bytes * static_cast<double>(times);
    sum.time += time * static_cast<double>(times);
  };
  for (const planner::LedgerEntry &entry : facts.collectives)
    add(axes[facts.setting.mesh.axes[at(entry.axis)].name], entry.perStep,
        entry.bytes, entry.time);
  for (const Send &send : sendsOf(problem, facts, plan))
    add(axes["pp"], plan.config.microBatches(), send.bytes, send.time);
  for (const TiedSum &sum : tiedSumsOf(problem, facts, plan))
    add(axes["pp"], sum.stages, sum.bytes, sum.time);
  return axes;
}

Unvalidated unvalidatedOf(const Problem &problem,
                          const PlannedCandidate &plan) {
  Unvalidated found;
  found.step = plan.time.step;
  for (const Gap &gap : kGaps) {
    planner::Seconds less;
    if (gap.time) {
      less = plan.time.*gap.time;
      if (less == planner::Seconds{})
        continue;
    } else {
      if (plan.config.pp == 1 || plan.config.schedule != gap.schedule)
        continue;
      planner::Parallelism config = plan.config;
      config.schedule = ScheduleKind::oneForwardOneBackward;
      less = plan.time.step - stepOf(problem, plan, config);
    }
    found.terms.push_back({gap.name, gap.without, plan.time.step - less});
    found.step = found.step - less;
  }
  if (plan.config.tiles > 1) {
    planner::Parallelism config = plan.config;
    config.tiles = 1;
    planner::Seconds step = stepOf(problem, plan, config);
    found.terms.push_back({"weights in tiles", "at once", step});
    found.step = found.step - (plan.time.step - step);
  }
  return found;
}

std::string complicationOf(const planner::FasterPlan &faster) {
  const planner::Simplicity &its = faster.simplicity, &ours = faster.chosen;
  if (its.kinds != ours.kinds)
    return fmt::format("has {} kinds of layers", its.kinds);
  if (its.fullness != ours.fullness)
    return "leaves less memory free";
  if (its.unusual != ours.unusual)
    return fmt::format("has {} unusual split{}", its.unusual,
                       its.unusual == 1 ? "" : "s");
  return "combines more techniques";
}

std::string claimText(const PlanOutcome &outcome) {
  if (!outcome.claim.empty())
    return outcome.claim;
  const planner::SearchResult &result = outcome.result;
  std::string claim = "Optimal";
  if (!result.optimal)
    claim = fmt::format("Best found, at most {:.2g} % above the optimum,",
                        100 * result.gap());
  if (const auto &faster = result.faster)
    claim = fmt::format(
        "Simpler and {:.2g} % slower than the fastest plan, which {} and is {}",
        100 * (outcome.best()->time.step / faster->step - 1),
        complicationOf(*faster),
        result.optimal ? "optimal"
                       : fmt::format("at most {:.2g} % above the optimum,",
                                     100 * result.gap()));
  std::int64_t left = result.unreached;
  return fmt::format("{} over {} candidate{}, {} of them excluded by bounds{}",
                     claim, result.candidates,
                     result.candidates == 1 ? "" : "s", result.pruned,
                     left > 0 ? fmt::format(", {} not reached", left) : "");
}

} // namespace mtplan::tools

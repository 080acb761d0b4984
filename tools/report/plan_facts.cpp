//===- plan_facts.cpp - Facts of a plan, for all reports ------------------===//

#include "tools/report/plan_facts.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/index.h"
#include "planner/search/space/tiling.h"
#include "tools/driver/parallelism_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::at;
using planner::PlannedCandidate;

namespace {

RunFact runOf(const PlanFacts &facts, const planner::SegmentPlan &plan) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(plan.segment)];
  const planner::Mesh &mesh = facts.setting.mesh;
  RunFact run{segment.name, plan.first, plan.count, {}, {}, {}};
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
          {parameter.name, planner::toString(state.stored, mesh),
           planner::localShape(parameter.shape, state.stored, mesh),
           state.reduceOncePerStep});
    }
  run.collectives = planner::ledgerOf(facts.graph, {plan}, facts.setting);
  return run;
}

// Returns whether a memory-bound forward operator is split over the sequence.
bool usesSequenceSplit(const PlanFacts &facts, const PlannedCandidate &plan) {
  for (const planner::SegmentPlan &run : plan.plans()) {
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (segment.ops[o].opClass == planner::OpClass::memory &&
          segment.ops[o].phase == planner::Phase::forward &&
          std::string_view("sequence") ==
              planner::wordOf(segment.ops[o], run.strategies[o],
                              planner::tensorAxisOf(facts.setting.mesh)))
        return true;
  }
  return false;
}

// Each stage sums and gathers its own copy of a shared weight.
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

std::string reasonAgainst(const PlannedCandidate &candidate,
                          const PlannedCandidate &best) {
  struct Part {
    const char *name;
    planner::Seconds here, there;
  };
  const planner::StepTime &a = candidate.time, &b = best.time;
  const Part parts[] = {{"compute", a.compute, b.compute},
                        {"tensor communication", a.tensor, b.tensor},
                        {"context communication", a.context, b.context},
                        {"data communication", a.data, b.data},
                        {"pipeline", a.pipeline, b.pipeline},
                        {"host", a.host, b.host},
                        {"local copies", a.local, b.local},
                        {"update", a.update, b.update}};
  const Part *most = std::ranges::max_element(parts, {}, [](const Part &part) {
    return (part.here - part.there).value;
  });
  return std::string(most->name) + ' ' + timeText(most->here) + " against " +
         timeText(most->there);
}

std::string slowdownText(const PlannedCandidate &plan,
                         const PlannedCandidate &best) {
  double most = 100 * (plan.time.step / best.time.step - 1);
  double least = 100 * (plan.lowerBound / best.time.step - 1);
  if (plan.optimal || most - least < 0.05)
    return fmt::format("{:+.1f} %", most);
  return fmt::format("{:+.1f} to {:+.1f} %", least, most);
}

std::string claimText(const PlanOutcome &outcome) {
  if (!outcome.claim.empty())
    return outcome.claim;
  const planner::SearchResult &result = outcome.result;
  std::string claim = "Optimal";
  if (!result.optimal)
    claim =
        fmt::format("Best found, at most {:.2g} % above the optimum,",
                    100 * (outcome.best()->time.step / result.lowerBound - 1));
  std::int64_t left = result.unreached;
  return fmt::format("{} over {} candidate{}, {} of them excluded by bounds{}",
                     claim, result.candidates,
                     result.candidates == 1 ? "" : "s", result.pruned,
                     left > 0 ? fmt::format(", {} not reached", left) : "");
}

} // namespace mtplan::tools

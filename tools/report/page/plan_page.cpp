//===- plan_page.cpp - The page about a search's outcome ------------------===//

#include "tools/report/page/plan_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/search/given_plan.h"
#include "planner/simulate/schedule.h"
#include "tools/driver/parallelism_text.h"
#include "tools/driver/rejections.h"
#include "tools/report/page/plan_parts.h"
#include "tools/report/page/step_page.h"
#include "tools/report/plan_facts.h"
#include "tools/report/plan_rows.h"
#include "tools/report/screen.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;

namespace {

std::string describe(const planner::Parallelism &config) {
  std::string choices = choicesText(config);
  return meshText(config) + ", " + batchText(config) +
         (choices.empty() ? "" : ", " + choices);
}

PageTable strategiesOf(const PlanFacts &facts) {
  PageTable table;
  table.title = "Strategies";
  table.text = "What each operator is split over, and the collectives that "
               "follow, of one copy and micro-batch.";
  table.columns = {"segment",    "operators",    "strategy",
                   "on one GPU", "then forward", "and backward"};
  for (const RunFact &run : facts.runs)
    for (const PlanRow &row : rowsOf(run, facts.setting.mesh))
      table.rows.push_back({nameOf(run), row.operators, row.strategy, row.shape,
                            row.forward, row.backward});
  return table;
}

} // namespace

Page pageOf(const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  const PlannedCandidate &best = *outcome.best();
  PlanFacts facts = factsOf(problem, best);
  planner::StepProblem step =
      planner::stepProblemOf(facts.graph, best.parts, facts.setting,
                             best.config, problem.options.overlaps);
  planner::StepResult result =
      planner::simulateStep(step, planner::scheduleOf(step.shape));

  Page page;
  page.title = problem.model.name + " on " + problem.machine.name;
  std::string heading = headingOf(problem, {});
  std::size_t line = heading.find('\n');
  page.model = heading.substr(0, line);
  page.machine = heading.substr(line + 1);
  page.plan = fmt::format("{}, global batch {}, sequence parallel {}.",
                          describe(best.config), problem.options.globalBatch,
                          facts.sequenceParallel ? "on" : "off");
  page.figures = {{"Step time", timeText(best.time.step)},
                  {"Tokens per second", countText(facts.tokensPerSecond)},
                  {"MFU", facts.mfu > 0 ? percentText(facts.mfu) : "unknown"},
                  {"Model TFLOP/s per GPU",
                   fmt::format("{:.1f}", facts.modelRate.value / 1e12)},
                  {"Memory per GPU",
                   fmt::format("{} of {} GiB", gibText(best.memory.total()),
                               gibText(best.memory.limit))},
                  {"GPUs", std::to_string(problem.options.devices)}};
  if (best.memory.host.value > 0)
    page.figures.push_back(
        {"Host memory per GPU",
         fmt::format("{} of {} GiB", gibText(best.memory.host),
                     gibText(best.memory.hostLimit))});
  page.notes = problem.notes;
  page.step = pageStep(best.time);
  page.stages = pageStages(step, result);
  page.timeline = pageTimeline(step, result);
  page.memory = pageMemory(planner::memoryByStage(facts.graph, best.parts,
                                                  facts.setting, best.config));
  page.traffic = pageTraffic(facts.collectives, facts.setting.mesh);
  addSends(page.traffic, result);
  for (const PlannedCandidate &plan : outcome.result.plans) {
    bool isBest = &plan == &best;
    page.alternatives.push_back({describe(plan.config), plan.time.step.value,
                                 plan.memory.total().value, isBest,
                                 isBest ? "" : slowdownText(plan, best),
                                 isBest ? "" : reasonAgainst(plan, best)});
  }
  page.memoryLimit = best.memory.limit.value;
  for (const RejectedMesh &mesh : rejectedMeshes(outcome))
    page.rejections.push_back(
        {meshText(mesh.nearest->config), reasonText(mesh, outcome)});
  page.searched = claimText(outcome) + '.';
  page.tables = {strategiesOf(facts)};
  page.made = "Written by mtplan. All times are predictions.";
  return page;
}

} // namespace mtplan::tools

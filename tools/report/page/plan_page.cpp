//===- plan_page.cpp - The page about a search's outcome ------------------===//

#include "tools/report/page/plan_page.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/search/solve_candidate.h"
#include "planner/simulate/schedule.h"
#include "tools/driver/plan_text.h"
#include "tools/report/comparison.h"
#include "tools/report/plan_facts.h"
#include "tools/report/plan_rows.h"
#include "tools/report/report.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::MemoryUse;
using planner::PlannedCandidate;
using planner::StageUse;
using planner::StepRole;
using planner::StepTime;

namespace {

// Two kinds of task may share a colour if they run on separate streams or never
// at the same time.
int colourOf(StepRole role) {
  switch (role) {
  case StepRole::forward:
    return 0;
  case StepRole::backward:
    return 1;
  case StepRole::weightGradient:
    return 2;
  case StepRole::sendForward:
  case StepRole::sendBackward:
    return 3;
  case StepRole::gather:
    return 5;
  case StepRole::reduce:
    return 7;
  case StepRole::tied:
  case StepRole::norm:
    return 4;
  case StepRole::update:
  case StepRole::hostUpdate:
    return 8;
  case StepRole::down:
  case StepRole::up:
    return 6;
  }
  return 0;
}

PageTable strategiesOf(const PlanFacts &facts) {
  PageTable table;
  table.title = "Strategies";
  table.text = "What each operator is split over, and the collectives that "
               "follow in each micro-batch.";
  table.columns = {"segment",    "operators",    "strategy",
                   "on one GPU", "then forward", "and backward"};
  for (const PlanBlock &block : blocksOf(facts, RowDetail::all))
    for (const PlanRow &row : block.rows)
      table.rows.push_back({nameOf(block), row.operators, row.strategy,
                            row.shape, row.forward, row.backward});
  return table;
}

} // namespace

PageBars pageStep(const StepTime &time) {
  struct Term {
    const char *name, *meaning;
    int colour; ///< as in pageStages()
    planner::Seconds StepTime::*time;
  };
  static constexpr Term kTerms[] = {
      {"compute", "Operators, as the roofline of the device prices them.", 0,
       &StepTime::compute},
      {"tensor communication", "Collectives between operators, tensor axis.", 1,
       &StepTime::tensor},
      {"context communication", "The same, context axis.", 7,
       &StepTime::context},
      {"expert communication", "Samples exchanged for their experts.", 3,
       &StepTime::exchange},
      {"local copies", "Slices and masks.", 4, &StepTime::local},
      {"data communication",
       "Parameters and gradients among replicas, as far as nothing else runs "
       "meanwhile.",
       5, &StepTime::data},
      {"host", "Waiting for what is offloaded to the host.", 2,
       &StepTime::host},
      {"host launches",
       "Waiting for the host, which launches kernels and collectives.", 9,
       &StepTime::launch},
      {"pipeline", "Waiting for other stages: bubble and messages.", 6,
       &StepTime::pipeline},
      {"update", "The optimizer's memory traffic.", 8, &StepTime::update},
  };
  PageBars bars;
  bars.bars.push_back({"step", {}, time.step.value, {}});
  for (const Term &term : kTerms)
    if ((time.*term.time).value != 0) {
      bars.parts.push_back({term.name, term.meaning, term.colour});
      bars.bars[0].parts.push_back((time.*term.time).value);
    }
  return bars;
}

PageBars pageMemory(const std::vector<MemoryUse> &stages) {
  PageBars bars;
  for (const MemoryClass &one : kMemoryClasses)
    bars.parts.push_back({one.name, one.meaning});
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    PageBar bar;
    bar.name = fmt::format("stage {}", stage);
    for (const MemoryClass &one : kMemoryClasses)
      bar.parts.push_back((stages[stage].*one.bytes).value);
    bar.total = stages[stage].total().value;
    bars.bars.push_back(std::move(bar));
    bars.limit = stages[stage].limit.value;
  }
  return bars;
}

std::vector<PageTraffic>
pageTraffic(const std::vector<planner::LedgerEntry> &ledger,
            const planner::Mesh &mesh) {
  std::vector<PageTraffic> traffic;
  for (const planner::LedgerEntry &entry : ledger) {
    const std::string &axis =
        mesh.axes[static_cast<std::size_t>(entry.axis)].name;
    std::string phase = nameOf(entry.phase), kind = nameOf(entry.kind);
    auto same = std::ranges::find_if(traffic, [&](const PageTraffic &one) {
      return one.axis == axis && one.phase == phase && one.kind == kind;
    });
    if (same == traffic.end()) {
      traffic.push_back({axis, phase, kind});
      same = traffic.end() - 1;
    }
    auto times = static_cast<double>(entry.perStep);
    same->count += entry.perStep;
    same->bytes += entry.bytes.value * times;
    same->seconds += entry.time.value * times;
  }
  std::ranges::stable_sort(traffic, {}, &PageTraffic::axis);
  return traffic;
}

void addSends(std::vector<PageTraffic> &traffic,
              const planner::StepResult &result) {
  PageTraffic sends[] = {{"pp", "forward", "send", 0, kUnknown},
                         {"pp", "backward", "send", 0, kUnknown}};
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    StepRole role = result.tasks[i].role;
    if (role != StepRole::sendForward && role != StepRole::sendBackward)
      continue;
    PageTraffic &one = sends[role == StepRole::sendBackward];
    ++one.count;
    one.seconds += result.graph.durationOf(static_cast<int>(i)).value;
  }
  for (PageTraffic &one : sends)
    if (one.count > 0)
      traffic.push_back(std::move(one));
}

PageTimeline pageTimeline(const planner::StepProblem &problem,
                          const planner::StepResult &result) {
  PageTimeline timeline;
  timeline.end = result.step.value;
  timeline.stages = problem.shape.stages;
  for (int role = 0; role <= static_cast<int>(StepRole::up); ++role)
    timeline.kinds.push_back(
        {nameOf(StepRole(role)), colourOf(StepRole(role))});

  // The key orders streams by stage, then compute before others, then by the
  // simulator's number of the stream.
  std::map<std::tuple<int, bool, int>, PageStream> streams;
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const planner::StepTask &task = result.tasks[i];
    PageStream &stream = streams[{task.stage, !task.onCompute,
                                  result.graph.streamOf(static_cast<int>(i))}];
    stream.stage = task.stage;
    stream.isCompute = task.onCompute;
    stream.tasks.push_back({result.timeline.start[i].value,
                            result.timeline.finish[i].value,
                            static_cast<int>(task.role), task.chunk,
                            task.microBatch, task.segment});
  }
  for (auto &[key, stream] : streams) {
    std::ranges::stable_sort(stream.tasks, {}, &PageTask::start);
    if (stream.isCompute) {
      stream.name = "compute";
    } else {
      // A communicator's stream may have several roles.
      std::vector<bool> has(timeline.kinds.size(), false);
      for (const PageTask &task : stream.tasks)
        has[static_cast<std::size_t>(task.kind)] = true;
      for (std::size_t kind = 0; kind < has.size(); ++kind)
        if (has[kind])
          stream.name +=
              (stream.name.empty() ? "" : ", ") + timeline.kinds[kind].name;
    }
    timeline.streams.push_back(std::move(stream));
  }
  return timeline;
}

PageBars pageStages(const planner::StepProblem &problem,
                    const planner::StepResult &result) {
  struct Term {
    const char *name, *meaning;
    int colour; ///< as in the timeline
    planner::Seconds StageUse::*time;
  };
  static constexpr Term kTerms[] = {
      {"forward and backward",
       "Operators of all micro-batches, with the collectives that stand "
       "between two of them.",
       0, &StageUse::busy},
      {"bubble", "Waiting for other stages' work.", 6, &StageUse::bubble},
      {"messages", "Waiting for, or spent on, sends from stage to stage.", 3,
       &StageUse::exposedPointToPoint},
      {"parameters and gradients",
       "Gathers and reduces among replicas that nothing else runs beside.", 5,
       &StageUse::exposedData},
      {"synchronisation",
       "The tied embedding's gradient, and the norm of all gradients.", 4,
       &StageUse::exposedSync},
      {"host", "Waiting for what is offloaded to the host.", 2,
       &StageUse::exposedHost},
      {"update", "The optimizer, on the device.", 8, &StageUse::update},
  };
  PageBars bars;
  bars.noteName = problem.shape.chunks > 1 ? "in flight (chunk and micro-batch)"
                                           : "micro-batches in flight";
  for (const Term &term : kTerms)
    if (std::ranges::any_of(result.stages, [&](const StageUse &use) {
          return (use.*term.time).value > 0;
        }))
      bars.parts.push_back({term.name, term.meaning, term.colour});
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    const StageUse &use = result.stages[stage];
    PageBar bar;
    bar.name = fmt::format("stage {}", stage);
    for (const Term &term : kTerms)
      if (std::ranges::find(bars.parts, std::string(term.name),
                            &PagePart::name) != bars.parts.end())
        bar.parts.push_back((use.*term.time).value);
    bar.note = std::to_string(use.inFlight.full);
    if (use.inFlight.weightOnly > 0)
      bar.note += fmt::format(" and {} for weights", use.inFlight.weightOnly);
    bars.bars.push_back(std::move(bar));
  }
  return bars;
}

Page pageOf(const PlanOutcome &outcome, const Sweep *sweep) {
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
                          configText(best.config), problem.options.globalBatch,
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
  for (const TiedSum &sum : tiedSumsOf(problem, facts, best))
    page.traffic.push_back({"pp", "update", "all_reduce", sum.stages,
                            sum.stages * sum.bytes.value,
                            sum.stages * sum.time.value});
  auto addPlan = [&](const PlannedCandidate &plan) {
    bool isBest = &plan == &best;
    page.alternatives.push_back({configText(plan.config), plan.time.step.value,
                                 plan.memory.total().value, isBest,
                                 isBest ? "" : slowdownText(plan, best),
                                 isBest ? "" : reasonAgainst(plan, best)});
  };
  for (const PlannedCandidate &plan : outcome.result.plans)
    addPlan(plan);
  if (sweep)
    for (const SweepRow &row : sweep->rows)
      if (row.plan &&
          std::ranges::none_of(outcome.result.plans, [&](const auto &listed) {
            return listed.config == row.plan->config;
          }))
        addPlan(*row.plan);
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

//===- comparison.cpp - Plans side by side --------------------------------===//

#include "tools/report/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "planner/search/simplest.h"
#include "planner/search/solve_candidate.h"
#include "tools/driver/objective.h"
#include "tools/driver/plan_text.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;
using planner::Rejection;

static constexpr double kNever = std::numeric_limits<double>::infinity();

std::string differencesText(const PlannedCandidate &plan,
                            const PlannedCandidate &best) {
  struct Difference {
    const char *name;
    double seconds;
  };
  std::vector<Difference> differences;
  double most = 0;
  for (const TimeTerm &term : kTimeTerms) {
    differences.push_back(
        {term.name, (plan.time.*term.time - best.time.*term.time).value});
    most = std::max(most, std::abs(differences.back().seconds));
  }
  std::ranges::stable_sort(differences, {}, [](const Difference &one) {
    return -std::abs(one.seconds);
  });
  constexpr double kMatters = 0.1; // share of the largest difference
  std::string text;
  for (const Difference &one : differences)
    if (one.seconds != 0 && std::abs(one.seconds) >= kMatters * most)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", one.name,
                          one.seconds < 0 ? '-' : '+',
                          timeText({std::abs(one.seconds)}));
  return text.empty() ? "takes the same" : text;
}

std::string shortageText(const planner::MemoryUse &memory) {
  std::vector<MemoryClass> classes(std::begin(kMemoryClasses),
                                   std::end(kMemoryClasses));
  std::ranges::stable_sort(classes,
                           [&](const MemoryClass &a, const MemoryClass &b) {
                             return memory.*a.bytes > memory.*b.bytes;
                           });
  std::string text = fmt::format("{} of {} GiB: ", gibText(memory.total()),
                                 gibText(memory.limit));
  constexpr std::size_t kNamed = 3;
  for (std::size_t i = 0; i < kNamed; ++i)
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", classes[i].name,
                        gibText(memory.*classes[i].bytes));
  return text;
}

std::string reasonAgainst(const PlannedCandidate &candidate,
                          const PlannedCandidate &best) {
  auto slower = [&](const TimeTerm &term) {
    return (candidate.time.*term.time - best.time.*term.time).value;
  };
  const TimeTerm *most = candidate.time.step < best.time.step
                             ? std::ranges::min_element(kTimeTerms, {}, slower)
                             : std::ranges::max_element(kTimeTerms, {}, slower);
  return std::string(most->name) + ' ' + timeText(candidate.time.*most->time) +
         " against " + timeText(best.time.*most->time);
}

std::string slowdownText(const PlannedCandidate &plan,
                         const PlannedCandidate &best) {
  double most = 100 * (plan.time.step / best.time.step - 1);
  double least = 100 * (plan.lowerBound / best.time.step - 1);
  if (plan.optimal || most - least < 0.05)
    return fmt::format("{:+.1f} %", most);
  return fmt::format("{:+.1f} to {:+.1f} %", least, most);
}

//===----------------------------------------------------------------------===//
// The best plan against all others
//===----------------------------------------------------------------------===//

namespace {

std::optional<PlannedCandidate> solve(const Problem &problem,
                                      const planner::Parallelism &config,
                                      const planner::Machine &machine) {
  planner::StageCache cache;
  Rejection ignored;
  return planner::solveCandidate(
      planner::withBatch(problem.graph, config.microBatch * config.dp),
      problem.options, machine, config, {kNever, 0}, cache, ignored);
}

// Describes the chosen plan. To show the cost of the memory limit, also solves
// the plan's configuration without a limit.
std::string chosenText(const PlanOutcome &outcome) {
  const PlannedCandidate &best = *outcome.best();
  planner::Machine unlimited = outcome.problem->machine;
  unlimited.device.memory = {1e300};
  const TimeTerm *most =
      std::ranges::max_element(kTimeTerms, {}, [&](const TimeTerm &term) {
        return (best.time.*term.time).value;
      });
  std::string text = fmt::format(
      "chosen: {}: {}, {} of it {}", configText(best.config),
      timeText(best.time.step),
      percentText(best.time.*most->time / best.time.step), most->name);
  std::optional<PlannedCandidate> free =
      solve(*outcome.problem, best.config, unlimited);
  if (!free)
    return text;
  if (free->time.step.value >= best.time.step.value * (1 - 1e-9))
    return text + fmt::format(
                      "; the memory limit costs nothing ({} of {} GiB used)",
                      gibText(best.memory.total()), gibText(best.memory.limit));
  return text + fmt::format("; with {} GiB it could take {}",
                            gibText(free->memory.total()),
                            timeText(free->time.step));
}

// Returns "needs 33.1 of 31.7 GiB: optimizer 11.6, ...", or the same for the
// host's memory.
std::string misfitText(const PlannedCandidate &plan) {
  if (plan.memory.total() <= plan.memory.limit)
    return fmt::format("needs {} of {} GiB of the host's",
                       gibText(plan.memory.host),
                       gibText(plan.memory.hostLimit));
  return "needs " + shortageText(plan.memory);
}

std::string rejectedText(const PlanOutcome &outcome, const RejectedMesh &mesh) {
  const Rejection &nearest = *mesh.nearest;
  std::string name = nearest.config.microBatch > 0 ? configText(nearest.config)
                                                   : meshText(nearest.config);
  if (nearest.reason == Rejection::Reason::divisor ||
      nearest.reason == Rejection::Reason::pins ||
      nearest.reason == Rejection::Reason::host || !nearest.detail.empty() ||
      nearest.config.microBatch == 0)
    return name + ": " + reasonText(mesh, outcome);
  std::optional<PlannedCandidate> plan =
      solve(*outcome.problem, nearest.config, outcome.problem->machine);
  if (!plan)
    return name + ": " + reasonText(mesh, outcome);
  if (!plan->fits)
    return name + ": " + misfitText(*plan);
  const PlannedCandidate &best = *outcome.best();
  std::string text = name + ": ";
  if (nearest.bound.value > best.time.step.value)
    text += fmt::format("at least {:+.1f} %, ",
                        100 * (nearest.bound / best.time.step - 1));
  return text + fmt::format("as it stands {:+.1f} %: {}",
                            100 * (plan->time.step / best.time.step - 1),
                            differencesText(*plan, best));
}

} // namespace

std::vector<std::string> explanationsOf(const PlanOutcome &outcome) {
  constexpr std::size_t kMostMeshes = 32;
  const PlannedCandidate &best = *outcome.best();
  std::vector<std::string> lines = {chosenText(outcome)};
  for (std::size_t i = 1; i < outcome.result.plans.size(); ++i) {
    const PlannedCandidate &plan = outcome.result.plans[i];
    lines.push_back(fmt::format("{}: {}: {}", configText(plan.config),
                                slowdownText(plan, best),
                                differencesText(plan, best)));
  }
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  for (std::size_t i = 0; i < std::min(meshes.size(), kMostMeshes); ++i)
    lines.push_back(rejectedText(outcome, meshes[i]));
  if (meshes.size() > kMostMeshes)
    lines.push_back(fmt::format("{} more meshes, none nearer to a plan",
                                meshes.size() - kMostMeshes));
  return lines;
}

std::string answerTo(const std::string &words, const PlanOutcome &narrower,
                     const PlanOutcome &outcome) {
  const std::string question = "why not " + words + ": ";
  if (!narrower.errors.empty())
    return question + narrower.errors.front();
  const PlannedCandidate &best = *outcome.best();
  const PlannedCandidate *plan = narrower.best();
  if (!plan) {
    const std::optional<PlannedCandidate> &nearest = narrower.result.nearest;
    if (nearest && !nearest->fits)
      return question + configText(nearest->config) + ' ' +
             misfitText(*nearest);
    return question + failureOf(narrower);
  }
  const std::string config = configText(plan->config);
  if (config == configText(best.config) && plan->time.step == best.time.step)
    return question + "it is the plan";
  std::string answer =
      question + config + " takes " + timeText(plan->time.step) + ", " +
      slowdownText(*plan, best) + ": " + differencesText(*plan, best);
  if (plan->time.step < outcome.result.lowerBound)
    return answer + "; the search did not include it";
  if (plan->time.step < outcome.result.fastestStep())
    return answer + "; the search did not find it";
  // If this plan is faster than the chosen plan, the chosen plan is simpler.
  const planner::Simplicity its =
      planner::simplicityOf(narrower.problem->graph, *plan);
  const planner::Simplicity ours =
      planner::simplicityOf(outcome.problem->graph, best);
  if (plan->time.step < best.time.step && ours < its)
    answer += "; it " + complicationOf({plan->time.step, its, ours});
  return answer;
}

//===----------------------------------------------------------------------===//
// Two saved plans
//===----------------------------------------------------------------------===//

namespace {

struct Side {
  explicit Side(const ComparedPlan &compared)
      : name(compared.name), problem(*compared.outcome->problem),
        plan(*compared.outcome->best()), facts(factsOf(problem, plan)) {}

  std::string name;
  const Problem &problem;
  const PlannedCandidate &plan;
  PlanFacts facts;
};

std::string signedTime(planner::Seconds seconds) {
  if (seconds.value == 0)
    return "";
  return (seconds.value < 0 ? "-" : "+") + timeText({std::abs(seconds.value)});
}

std::string signedGib(planner::Bytes bytes) {
  if (bytes.value == 0)
    return "";
  return (bytes.value < 0 ? "-" : "+") + gibText({std::abs(bytes.value)}) +
         " GiB";
}

void addSetting(Table &table, const Side &a, const Side &b) {
  auto row = [&](const char *what, const std::string &here,
                 const std::string &there) {
    if (here != there)
      table.add({what, here.empty() ? "-" : here, there.empty() ? "-" : there});
  };
  auto machine = [](const Side &side) {
    return fmt::format("{} x {}", side.problem.options.devices,
                       side.problem.machine.name);
  };
  row("model", a.problem.model.name, b.problem.model.name);
  row("sequence", std::to_string(a.problem.model.sequence),
      std::to_string(b.problem.model.sequence));
  row("machine", machine(a), machine(b));
  row("software", a.problem.software.name, b.problem.software.name);
  row("precision", nameOf(a.problem.options.precision),
      nameOf(b.problem.options.precision));
  row("mesh", meshText(a.plan.config), meshText(b.plan.config));
  row("batch", batchText(a.plan.config), batchText(b.plan.config));
  row("global batch", std::to_string(a.plan.config.globalBatch),
      std::to_string(b.plan.config.globalBatch));
  row("choices", choicesText(a.plan.config), choicesText(b.plan.config));
  row("splits", splitsText(a.problem.options.tensorSplits),
      splitsText(b.problem.options.tensorSplits));
}

void addTime(Table &table, const Side &a, const Side &b) {
  const planner::StepTime &here = a.plan.time, &there = b.plan.time;
  auto row = [&](const std::string &name,
                 planner::Seconds planner::StepTime::*time) {
    if ((here.*time).value != 0 || (there.*time).value != 0)
      table.add({name, timeText(here.*time), timeText(there.*time),
                 signedTime(there.*time - here.*time)});
  };
  row("step", &planner::StepTime::step);
  for (const TimeTerm &term : kTimeTerms)
    row(std::string("  ") + term.name, term.time);
}

void addMemory(Table &table, const Side &a, const Side &b) {
  const planner::MemoryUse &here = a.plan.memory, &there = b.plan.memory;
  auto row = [&](const std::string &what, planner::Bytes one,
                 planner::Bytes other) {
    table.add({what, gibText(one) + " GiB", gibText(other) + " GiB",
               signedGib(other - one)});
  };
  row("memory", here.total(), there.total());
  for (const MemoryClass &one : kMemoryClasses)
    row(std::string("  ") + one.name, here.*one.bytes, there.*one.bytes);
  if (here.host.value > 0 || there.host.value > 0)
    row("on the host", here.host, there.host);
}

void addTraffic(Table &table, const Side &a, const Side &b) {
  auto trafficOf = [](const Side &side) {
    return trafficByAxis(side.problem, side.facts, side.plan);
  };
  std::map<std::string, Traffic> here = trafficOf(a), there = trafficOf(b);
  std::map<std::string, Traffic> all = here;
  all.insert(there.begin(), there.end());
  auto text = [](const Traffic &one) {
    return one.count == 0 ? std::string("-")
                          : fmt::format("{} in {}, {}", bytesText(one.bytes),
                                        one.count, timeText(one.time));
  };
  for (const auto &[axis, ignored] : all)
    table.add({"  over " + axis, text(here[axis]), text(there[axis]),
               signedTime(there[axis].time - here[axis].time)});
}

std::map<std::string, std::map<int, std::string>>
strategiesOf(const Side &side, std::vector<std::string> &order) {
  std::map<std::string, std::map<int, std::string>> all;
  for (const RunFact &run : side.facts.runs)
    for (const OpFact &op : run.ops)
      if (op.phase == planner::Phase::forward) {
        if (!all.contains(op.label) &&
            std::ranges::find(order, op.label) == order.end())
          order.push_back(op.label);
        for (int copy = run.first; copy < run.first + run.copies; ++copy)
          all[op.label][copy] = op.strategy;
      }
  return all;
}

std::string counted(const std::map<int, std::string> &copies) {
  std::vector<std::pair<std::string, int>> counts;
  for (const auto &[copy, word] : copies) {
    auto same =
        std::ranges::find(counts, word, &std::pair<std::string, int>::first);
    if (same == counts.end())
      counts.emplace_back(word, 1);
    else
      ++same->second;
  }
  std::string text;
  for (const auto &[word, count] : counts)
    text += (text.empty() ? "" : ", ") + word +
            (counts.size() > 1 ? fmt::format(" ({})", count) : "");
  return text.empty() ? "-" : text;
}

std::string strategiesText(const Side &a, const Side &b) {
  constexpr std::size_t kMostRows = 40;
  std::vector<std::string> order;
  auto here = strategiesOf(a, order), there = strategiesOf(b, order);
  Table table;
  std::size_t rows = 0, left = 0;
  for (const std::string &label : order) {
    if (here[label] == there[label])
      continue;
    if (rows++ < kMostRows)
      table.add({label, counted(here[label]), counted(there[label])});
    else
      ++left;
  }
  std::string text = table.print("  ");
  if (left > 0)
    text += fmt::format("  and {} more\n", left);
  return text.empty() ? "Operators  are all split alike\n"
                      : "Operators  that are split otherwise\n" + text;
}

std::string verdict(const Side &a, const Side &b) {
  double ratio = b.plan.time.step / a.plan.time.step;
  if (std::abs(ratio - 1) < 1e-9)
    return "Both take the same time.\n";
  const Side &fast = ratio > 1 ? a : b;
  const Side &slow = ratio > 1 ? b : a;
  return fmt::format("{} is {:.1f} % faster: the other has {}\n", fast.name,
                     100 * (slow.plan.time.step / fast.plan.time.step - 1),
                     differencesText(slow.plan, fast.plan));
}

} // namespace

std::string comparisonOf(const ComparedPlan &one, const ComparedPlan &other) {
  Side a(one), b(other);
  Table table;
  table.add({"", a.name, b.name});
  addSetting(table, a, b);
  addTime(table, a, b);
  addMemory(table, a, b);
  table.add({"sent per step"});
  addTraffic(table, a, b);
  return table.print("") + strategiesText(a, b) + verdict(a, b);
}

} // namespace mtplan::tools

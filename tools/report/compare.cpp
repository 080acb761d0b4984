//===- compare.cpp - Two saved plans side by side -------------------------===//

#include "tools/report/compare.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tools/driver/parallelism_text.h"
#include "tools/report/explain.h"
#include "tools/report/plan_facts.h"
#include "tools/report/sends.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;

namespace {

/// One of the two plans.
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

std::string splitsText(const Side &side) {
  std::string text;
  for (planner::Split split : side.problem.options.tensorSplits)
    text += (text.empty() ? "" : ",") + std::string(nameOf(split));
  return text;
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
  row("splits", splitsText(a), splitsText(b));
}

void addTime(Table &table, const Side &a, const Side &b) {
  using planner::StepTime;
  struct Term {
    const char *name;
    planner::Seconds StepTime::*time;
  };
  constexpr Term kTerms[] = {{"step", &StepTime::step},
                             {"  compute", &StepTime::compute},
                             {"  tensor communication", &StepTime::tensor},
                             {"  context communication", &StepTime::context},
                             {"  expert communication", &StepTime::exchange},
                             {"  data communication", &StepTime::data},
                             {"  pipeline", &StepTime::pipeline},
                             {"  host", &StepTime::host},
                             {"  local copies", &StepTime::local},
                             {"  update", &StepTime::update}};
  for (const Term &term : kTerms) {
    planner::Seconds here = a.plan.time.*term.time,
                     there = b.plan.time.*term.time;
    if (here.value != 0 || there.value != 0)
      table.add({term.name, timeText(here), timeText(there),
                 signedTime(there - here)});
  }
}

void addMemory(Table &table, const Side &a, const Side &b) {
  using planner::MemoryUse;
  auto row = [&](const char *what, planner::Bytes here, planner::Bytes there) {
    table.add({what, gibText(here) + " GiB", gibText(there) + " GiB",
               signedGib(there - here)});
  };
  row("memory", a.plan.memory.total(), b.plan.memory.total());
  constexpr std::pair<const char *, planner::Bytes MemoryUse::*> kClasses[] = {
      {"  parameters", &MemoryUse::parameters},
      {"  gradients", &MemoryUse::gradients},
      {"  optimizer", &MemoryUse::optimizer},
      {"  activations", &MemoryUse::activations},
      {"  workspace", &MemoryUse::workspace},
      {"  spare", &MemoryUse::spare},
      {"  reserved", &MemoryUse::reserved}};
  for (auto [name, bytes] : kClasses)
    row(name, a.plan.memory.*bytes, b.plan.memory.*bytes);
  if (a.plan.memory.host.value > 0 || b.plan.memory.host.value > 0)
    row("on the host", a.plan.memory.host, b.plan.memory.host);
}

/// The traffic of one rank of every stage per step, summed.
struct Traffic {
  std::int64_t count = 0;
  planner::Bytes bytes;
  planner::Seconds time;

  void add(std::int64_t times, planner::Bytes each, planner::Seconds takes) {
    count += times;
    bytes += each * static_cast<double>(times);
    time += takes * static_cast<double>(times);
  }
};

std::map<std::string, Traffic> trafficOf(const Side &side) {
  std::map<std::string, Traffic> axes;
  for (const planner::LedgerEntry &entry : side.facts.collectives)
    axes[side.facts.setting.mesh.axes[static_cast<std::size_t>(entry.axis)]
             .name]
        .add(entry.perStep, entry.bytes, entry.time);
  for (const Send &send : sendsOf(side.problem, side.facts, side.plan))
    axes["pp"].add(side.plan.config.microBatches(), send.bytes, send.time);
  return axes;
}

void addTraffic(Table &table, const Side &a, const Side &b) {
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

/// Returns the strategy of each layer, by forward operator.
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

// Returns "column" if all layers have it, else "column (12), row (4)".
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

//===- sweep.cpp - The best plan for each value of some flags -------------===//

#include "tools/report/sweep.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "planner/search/space/enumerate.h"
#include "tools/driver/objective.h"
#include "tools/driver/plan_text.h"
#include "tools/report/plan_facts.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::SearchOptions;

namespace {

struct Swept {
  const char *name;
  std::int64_t (*value)(const Parallelism &);
  void (*fix)(SearchOptions &, const Parallelism &);
  const char *(*word)(const Parallelism &) = nullptr; ///< null: a number
  bool ofMesh = false;                                ///< a degree of the mesh

  std::string text(const Parallelism &config) const {
    return word ? word(config) : std::to_string(value(config));
  }
};

template <auto degree, auto option>
constexpr Swept meshDegree(const char *name) {
  return {
      name, [](const Parallelism &c) -> std::int64_t { return c.*degree; },
      [](SearchOptions &o, const Parallelism &c) { o.*option = {{c.*degree}}; },
      nullptr, true};
}

template <auto member, auto option> constexpr Swept choice(const char *name) {
  return {
      name,
      [](const Parallelism &c) { return static_cast<std::int64_t>(c.*member); },
      [](SearchOptions &o, const Parallelism &c) {
        o.*option = {{c.*member}};
      }};
}

template <auto member, auto option> constexpr Swept words(const char *name) {
  Swept swept = choice<member, option>(name);
  swept.word = [](const Parallelism &c) { return nameOf(c.*member); };
  return swept;
}

constexpr Swept kSwept[] = {
    {"dp", [](const Parallelism &c) -> std::int64_t { return c.dp; },
     [](SearchOptions &o, const Parallelism &c) { o.dp = c.dp; }, nullptr,
     true},
    {"tp", [](const Parallelism &c) -> std::int64_t { return c.tp; },
     [](SearchOptions &o, const Parallelism &c) { o.tp = c.tp; }, nullptr,
     true},
    meshDegree<&Parallelism::pp, &SearchOptions::pp>("pp"),
    meshDegree<&Parallelism::cp, &SearchOptions::cp>("cp"),
    meshDegree<&Parallelism::ep, &SearchOptions::ep>("ep"),
    {"micro-batch", [](const Parallelism &c) { return c.microBatch; },
     [](SearchOptions &o, const Parallelism &c) {
       o.microBatch = c.microBatch;
     }},
    choice<&Parallelism::zeroStage, &SearchOptions::zeroStage>("zero"),
    choice<&Parallelism::virtualStages, &SearchOptions::virtualStages>("vp"),
    choice<&Parallelism::tiles, &SearchOptions::tiles>("tiles"),
    words<&Parallelism::schedule, &SearchOptions::schedule>("schedule"),
    words<&Parallelism::recompute, &SearchOptions::recompute>("recompute"),
    words<&Parallelism::offload, &SearchOptions::offload>("offload")};

const Swept &sweptBy(const std::string &name) {
  return *std::ranges::find(kSwept, name, &Swept::name);
}

using Key = std::vector<std::int64_t>;

Key keyOf(const std::vector<std::string> &names, const Parallelism &config,
          bool ofMeshOnly) {
  Key key;
  for (const std::string &name : names)
    if (const Swept &swept = sweptBy(name); swept.ofMesh || !ofMeshOnly)
      key.push_back(swept.value(config));
  return key;
}

SweepRow searchFixed(PlanOutcome &outcome,
                     const std::vector<std::string> &names,
                     const Parallelism &config) {
  SweepRow row;
  PlanOutcome fixed;
  fixed.asked = outcome.asked;
  fixed.asked.offloadsIfNeeded = false;
  fixed.problem = std::move(outcome.problem);
  SearchOptions &options = fixed.problem->options;
  const SearchOptions open = options;
  options.top = 1;
  options.stop = nullptr; // every search has the whole time of --budget-seconds
  for (const std::string &name : names) {
    const Swept &swept = sweptBy(name);
    swept.fix(options, config);
    row.values.push_back(swept.text(config));
  }
  searchProblem(fixed);
  if (fixed.best())
    row.plan = *fixed.best();
  else
    row.reason = failureOf(fixed);
  options = open;
  outcome.problem = std::move(fixed.problem);
  return row;
}

std::string cellOf(const std::string &text) {
  if (text.find_first_of(",\"\n") == text.npos)
    return text;
  std::string quoted = "\"";
  for (char c : text)
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

} // namespace

std::vector<std::string> sweepableNames() {
  std::vector<std::string> names;
  for (const Swept &swept : kSwept)
    names.emplace_back(swept.name);
  return names;
}

Sweep sweepOf(PlanOutcome &outcome, const std::vector<std::string> &names) {
  Sweep sweep{names, {}};
  std::vector<planner::Rejection> rejections;
  std::map<Key, Parallelism> combinations, meshes;
  for (const Parallelism &config :
       planner::enumerateSpace(outcome.problem->graph, outcome.problem->machine,
                               outcome.problem->options, rejections)) {
    combinations.emplace(keyOf(names, config, false), config);
    meshes.emplace(keyOf(names, config, true), config);
  }
  for (const auto &[key, config] : combinations)
    sweep.rows.push_back(searchFixed(outcome, names, config));
  for (const planner::Rejection &rejection : rejections)
    if (meshes.emplace(keyOf(names, rejection.config, true), rejection.config)
            .second) {
      SweepRow row;
      for (const std::string &name : names) {
        const Swept &swept = sweptBy(name);
        row.values.push_back(swept.ofMesh ? swept.text(rejection.config) : "");
      }
      row.reason = reasonText({&rejection}, outcome);
      sweep.rows.push_back(std::move(row));
    }
  return sweep;
}

std::string csvOf(const Sweep &sweep) {
  std::string text;
  for (const std::string &name : sweep.names)
    text += name + ',';
  text += "step_time_s,memory_bytes,plan,reason\n";
  for (const SweepRow &row : sweep.rows) {
    for (const std::string &value : row.values)
      text += value + ',';
    if (row.plan)
      text += fmt::format("{},{:.0f},{},\n", row.plan->time.step.value,
                          row.plan->memory.total().value,
                          cellOf(configText(row.plan->config)));
    else
      text += ",,," + cellOf(row.reason) + '\n';
  }
  return text;
}

} // namespace mtplan::tools

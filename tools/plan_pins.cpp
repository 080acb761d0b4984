//===- plan_pins.cpp - A plan as a constraints file -----------------------===//
//
// A pin per operator and parameter, for all copies of its segment at once where
// they are laid out alike.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "planner/index.h"
#include "tools/constraints.h"

namespace mtplan::tools {

using planner::at;

namespace {

/// What is said of a label: a value per copy, by the copy's number.
using Said = std::map<int, std::string>;

class PinWriter {
public:
  PinWriter(const planner::ModelGraph &graph, const planner::Setting &s)
      : model(graph), setting(s), axis(planner::tensorAxisOf(s.mesh)) {}

  void add(const planner::SegmentPlan &run) {
    const planner::SegmentGraph &segment = model.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      say(operators, segment.ops[o].name, run,
          planner::wordOf(segment.ops[o], run.strategies[o], axis));
    for (std::size_t p = 0; p < run.parameters.size(); ++p)
      if (run.parameters[p])
        say(parameters, model.parameters[p].name, run,
            entriesOf(*run.parameters[p]));
  }

  std::vector<std::string> pins() const {
    std::vector<std::string> all;
    for (const Labels *labels : {&operators, &parameters})
      for (const auto &[label, said] : *labels)
        write(label, said, *labels, all);
    return all;
  }

private:
  /// In the order in which they were first met.
  using Labels = std::vector<std::pair<std::string, Said>>;

  static void say(Labels &labels, const std::string &label,
                  const planner::SegmentPlan &run, const std::string &value) {
    auto entry =
        std::ranges::find(labels, label, &std::pair<std::string, Said>::first);
    if (entry == labels.end()) {
      labels.push_back({label, {}});
      entry = labels.end() - 1;
    }
    for (int copy = run.first; copy < run.first + run.count; ++copy)
      entry->second[copy] = value;
  }

  std::string entriesOf(const planner::ParameterState &state) const {
    std::string entries;
    for (const std::vector<int> &dim : state.stored.dims) {
      bool split = std::ranges::find(dim, axis) != dim.end();
      entries +=
          (entries.empty() ? "[" : ",") + std::string(split ? "tp" : "-");
    }
    return entries.empty() ? "[]" : entries + ']';
  }

  // One pin for all copies, unless it would say something wrong of a copy or of
  // another label that its star matches.
  static void write(const std::string &label, const Said &said,
                    const Labels &labels, std::vector<std::string> &all) {
    const std::string &value = said.begin()->second;
    bool alike = std::ranges::all_of(labels, [&](const auto &other) {
      return !planner::matchesPattern(label, other.first) ||
             std::ranges::all_of(other.second, [&](const auto &one) {
               return one.second == value;
             });
    });
    std::size_t star = label.find('*');
    if (alike || star == label.npos) {
      all.push_back(label + '=' + value);
      return;
    }
    for (auto one = said.begin(); one != said.end();) {
      auto last = one, next = std::next(one);
      while (next != said.end() && next->first == last->first + 1 &&
             next->second == one->second)
        last = next++;
      std::string copies = std::to_string(one->first);
      if (last != one)
        copies += ".." + std::to_string(last->first);
      all.push_back(label.substr(0, star) + copies + label.substr(star + 1) +
                    '=' + one->second);
      one = next;
    }
  }

  const planner::ModelGraph &model;
  const planner::Setting &setting;
  int axis;
  Labels operators, parameters;
};

} // namespace

std::string constraintsOf(const PlanRequest &request, const Problem &problem,
                          const planner::PlannedCandidate &plan) {
  const planner::Parallelism &how = plan.how;
  nlohmann::ordered_json json = {{"mtplan_constraints", 1}};
  json.update(constraintsOf(request, problem));
  json["micro_batch"] = how.microBatch;
  json["tp"] = how.tp;
  json["dp"] = how.dp;
  json["pp"] = how.pp;
  json["cp"] = how.cp;
  json["ep"] = how.ep;
  json["schedule"] = nameOf(how.schedule);
  json["vp"] = how.virtualStages;
  json.erase("stage_layers");
  if (how.pp > 1)
    json["stage_layers"] = how.layers;
  json["zero"] = how.zeroStage;
  json.erase("zero_ranks");
  if (how.zeroStage > 0)
    json["zero_ranks"] = how.zeroRanks;
  json["recompute"] = nameOf(how.recompute);
  json.erase("recompute_layers");
  if (how.recompute == planner::Recompute::full && how.recomputeLayers > 0)
    json["recompute_layers"] = how.recomputeLayers;
  json["offload"] = nameOf(how.offload);
  json["tiles"] = how.tiles;
  json.erase("pins");
  for (const char *listing : {"top", "objective", "budget_seconds"})
    json.erase(listing);
  if (how.tp > 1) {
    planner::Setting setting =
        planner::settingOf(problem.options, problem.machine, how);
    PinWriter writer(problem.graph, setting);
    for (const planner::SegmentPlan &run : plan.plans())
      writer.add(run);
    json["pins"] = writer.pins();
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         '\n';
}

} // namespace mtplan::tools

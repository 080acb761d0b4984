//===- plan_pins.cpp - A plan as a constraints file -----------------------===//
//
// Writes a pin per operator and parameter; one pin covers all repeated layers
// that have the same layout.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "planner/index.h"
#include "tools/driver/constraints.h"

namespace mtplan::tools {

using planner::at;

namespace {

/// The value of a label in each layer, by the layer's number.
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
  /// Labels in order of their first appearance.
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

  // Writes one pin for all layers, unless the pin would be wrong for a layer or
  // for another label that its star matches.
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
  const planner::Parallelism &config = plan.config;
  nlohmann::ordered_json json = {{"mtplan_constraints", 1}};
  json.update(constraintsOf(request, problem));
  json["micro_batch"] = config.microBatch;
  json["tp"] = config.tp;
  json["dp"] = config.dp;
  json["pp"] = config.pp;
  json["cp"] = config.cp;
  json["ep"] = config.ep;
  json["schedule"] = nameOf(config.schedule);
  json["vp"] = config.virtualStages;
  json.erase("stage_layers");
  if (config.pp > 1)
    json["stage_layers"] = config.layers;
  json["zero"] = config.zeroStage;
  json.erase("zero_ranks");
  if (config.zeroStage > 0)
    json["zero_ranks"] = config.zeroRanks;
  json["recompute"] = nameOf(config.recompute);
  json.erase("recompute_layers");
  if (config.recompute == planner::Recompute::full &&
      config.recomputeLayers > 0)
    json["recompute_layers"] = config.recomputeLayers;
  json["offload"] = nameOf(config.offload);
  json["tiles"] = config.tiles;
  json.erase("pins");
  for (const char *listing : {"top", "objective", "budget_seconds"})
    json.erase(listing);
  if (config.tp > 1) {
    planner::Setting setting =
        planner::settingOf(problem.options, problem.machine, config);
    PinWriter writer(problem.graph, setting);
    for (const planner::SegmentPlan &run : plan.plans())
      writer.add(run);
    json["pins"] = writer.pins();
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         '\n';
}

} // namespace mtplan::tools

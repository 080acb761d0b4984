//===- saved_candidate.cpp - A candidate in a saved plan ------------------===//

#include "tools/driver/saved_candidate.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "planner/integers.h"
#include "planner/search/space/pipeline_parts.h"
#include "tools/driver/plan_text.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using planner::at;
using planner::Layout;
using planner::Parallelism;
using planner::SegmentGraph;
using planner::SegmentPlan;

namespace {

const char *const kPhases[] = {"forward", "backward"};

// Returns the names of the tensors. A name that an earlier tensor already has
// gets the suffix "@" and the tensor's index.
std::vector<std::string> keysOf(const SegmentGraph &segment) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const planner::Tensor &tensor : segment.tensors)
    keys.push_back(seen.insert(tensor.name).second
                       ? tensor.name
                       : tensor.name + '@' + std::to_string(keys.size()));
  return keys;
}

/// Describes one kind of the values that cross the boundaries of a segment.
struct Side {
  const char *key;
  std::vector<int> SegmentGraph::*tensors;
  std::vector<Layout> SegmentPlan::*layouts;
  bool makes; ///< true: received by the segment; false: sent
};
constexpr Side kSides[] = {
    {"carried_in", &SegmentGraph::carriedIn, &SegmentPlan::carriedIn, true},
    {"gradient_out", &SegmentGraph::gradientOut, &SegmentPlan::gradientOut,
     false},
    {"carried_out", &SegmentGraph::carriedOut, &SegmentPlan::carriedOut, false},
    {"gradient_in", &SegmentGraph::gradientIn, &SegmentPlan::gradientIn, true}};

// Returns for each tensor whether it is an activation of the forward half that
// an operator of the backward half reads.
std::vector<bool> keptFor(const SegmentGraph &segment) {
  std::vector<bool> kept(segment.tensors.size(), false);
  for (const planner::Op &op : segment.ops)
    for (const planner::Use &use : op.operands) {
      const planner::Tensor &tensor = segment.tensors[at(use.tensor)];
      if (op.phase == planner::Phase::backward &&
          tensor.phase == planner::Phase::forward &&
          tensor.kind == planner::TensorKind::activation)
        kept[at(use.tensor)] = true;
    }
  return kept;
}

// Writes the state's reducedOncePerStep: true if there is one tensor axis, else
// the names of the axes.
json reducedOncePerStepJson(const planner::ParameterState &state,
                            const planner::Mesh &mesh) {
  if (planner::tensorAxesOf(mesh).size() == 1)
    return true;
  json names = json::array();
  for (int axis : state.reducedOncePerStep)
    names.push_back(mesh.axes[at(axis)].name);
  return names;
}

// Writes a run, but leaves out its first layer and its number of layers.
json runJson(const planner::ModelGraph &graph, const SegmentPlan &run,
             const planner::Mesh &mesh) {
  const SegmentGraph &segment = graph.segments[at(run.segment)];
  auto text = [&](const Layout &layout) {
    return planner::toString(layout, mesh);
  };
  std::vector<std::string> keys = keysOf(segment);
  json value = {{"segment", segment.name}};
  json &ops = value["operators"] = json::object();
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    ops[segment.ops[o].name] =
        strategyText(segment.ops[o], run.strategies[o], mesh);
  json &parameters = value["parameters"] = json::object();
  for (std::size_t p = 0; p < run.parameters.size(); ++p) {
    if (!run.parameters[p])
      continue;
    const planner::ParameterState &state = *run.parameters[p];
    json &entry = parameters[graph.parameters[p].name];
    entry["stored"] = text(state.stored);
    if (!state.reducedOncePerStep.empty())
      entry["reduce_once_per_step"] = reducedOncePerStepJson(state, mesh);
    if (!state.optimizer.dims.empty())
      entry["optimizer"] = text(state.optimizer);
    if (state.gradientIsSplit)
      entry["gradient_is_split"] = true;
  }
  json &kept = value["kept"] = json::object();
  for (std::size_t t = 0; t < run.saved.size(); ++t)
    if (run.saved[t])
      kept[keys[t]] = text(*run.saved[t]);
  for (const Side &side : kSides) {
    json &layouts = value[side.key] = json::array();
    for (const Layout &layout : run.*side.layouts)
      layouts.push_back(text(layout));
  }
  json &changes = value["changes"] = json::array();
  for (const planner::PlannedConversion &change : run.conversions)
    changes.push_back({{"value", keys[at(change.tensor)]},
                       {"phase", kPhases[static_cast<int>(change.phase)]},
                       {"from", text(change.from)},
                       {"to", text(change.to)}});
  return value;
}

class RunReader {
public:
  RunReader(const planner::ModelGraph &graph, const planner::Setting &s,
            std::vector<std::string> &findings)
      : model(graph), setting(s), errors(findings) {}

  std::optional<SegmentPlan> read(const json &value, const std::string &where) {
    std::size_t before = errors.size();
    JsonFields fields(value, where, errors);
    std::string name = fields.text("segment");
    auto found = std::ranges::find(model.segments, name, &SegmentGraph::name);
    if (errors.size() != before)
      return std::nullopt;
    if (found == model.segments.end()) {
      fields.fail("segment", "the model has no segment \"" + name + '"');
      return std::nullopt;
    }
    segment = &*found;
    keys = keysOf(*segment);
    plan.segment = static_cast<int>(found - model.segments.begin());
    plan.made.resize(segment->tensors.size());
    plan.saved.resize(segment->tensors.size());
    plan.parameters.resize(model.parameters.size());
    readMembers(fields, "operators",
                [this](JsonFields &ops) { readOperators(ops); });
    readMembers(fields, "parameters",
                [this](JsonFields &all) { readParameters(all); });
    readMembers(fields, "kept", [this](JsonFields &kept) { readKept(kept); });
    for (const Side &side : kSides)
      readSide(side, fields);
    readChanges(fields);
    fields.rejectOthers();
    if (errors.size() != before)
      return std::nullopt;
    fillMade();
    return std::move(plan);
  }

private:
  std::optional<Layout> layout(const std::string &text,
                               const std::vector<std::int64_t> &shape,
                               const std::string &where) {
    std::string error;
    std::optional<Layout> one = readLayout(text, shape, setting.mesh, error);
    if (!one)
      errors.push_back(where + ": " + error);
    return one;
  }

  // Returns nothing, with an error, if the key holds no layout of that shape.
  std::optional<Layout> layoutAt(JsonFields &fields, const std::string &key,
                                 const std::vector<std::int64_t> &shape) {
    const std::size_t before = errors.size();
    const std::string text = fields.text(key);
    if (errors.size() != before)
      return std::nullopt;
    return layout(text, shape, fields.pointerTo(key));
  }

  // Calls `read` for the object at `key`. Each member that `read` does not read
  // is an error.
  template <typename Read>
  void readMembers(JsonFields &fields, const char *key, Read read) {
    const json *value = fields.need(key);
    if (!value)
      return;
    JsonFields members(*value, fields.pointerTo(key), errors);
    read(members);
    members.rejectOthers();
  }

  void readOperators(JsonFields &ops) {
    for (const planner::Op &op : segment->ops) {
      std::size_t before = errors.size();
      std::string text = ops.text(op.name), error;
      if (errors.size() != before)
        continue;
      auto strategy =
          readStrategy(text, op, setting.mesh, setting.rules, error);
      if (strategy)
        plan.strategies.push_back(*strategy);
      else
        ops.fail(op.name, error);
    }
  }

  std::vector<int> reducedOncePerStep(JsonFields &parameter) {
    constexpr const char *kKey = "reduce_once_per_step";
    std::vector<int> axes = planner::tensorAxesOf(setting.mesh);
    if (axes.size() == 1)
      return parameter.boolean(kKey, false) ? axes : std::vector<int>{};
    std::vector<json> names;
    for (const auto &[name, where] : parameter.elements(kKey, false))
      names.push_back(*name);
    std::erase_if(axes, [&](int axis) {
      return !planner::contains(names, json(setting.mesh.axes[at(axis)].name));
    });
    if (axes.size() != names.size())
      parameter.fail(kKey, "must name tensor axes of the plan, each once");
    return axes;
  }

  void readParameters(JsonFields &all) {
    for (const planner::Tensor &tensor : segment->tensors) {
      if (tensor.kind != planner::TensorKind::parameter)
        continue;
      const planner::Parameter &parameter =
          model.parameters[at(tensor.parameter)];
      const json *entry = all.need(parameter.name);
      if (!entry)
        continue;
      JsonFields one(*entry, all.pointerTo(parameter.name), errors);
      planner::ParameterState state;
      state.stored =
          layoutAt(one, "stored", parameter.shape).value_or(Layout{});
      state.reducedOncePerStep = reducedOncePerStep(one);
      if (one.find("optimizer"))
        state.optimizer =
            layoutAt(one, "optimizer", parameter.shape).value_or(Layout{});
      state.gradientIsSplit = one.boolean("gradient_is_split", false);
      one.rejectOthers();
      auto states = planner::parameterStates(model, tensor.parameter, setting);
      if (!state.stored.dims.empty() &&
          std::ranges::find(states, state) == states.end())
        all.fail(parameter.name, "no plan with ZeRO stage " +
                                     std::to_string(setting.zeroStage) +
                                     " and these splits keeps it so");
      plan.parameters[at(tensor.parameter)] = state;
    }
  }

  void readKept(JsonFields &kept) {
    const std::vector<bool> wanted = keptFor(*segment);
    for (std::size_t t = 0; t < wanted.size(); ++t)
      if (wanted[t])
        plan.saved[t] = layoutAt(kept, keys[t], segment->tensors[t].shape);
  }

  void readSide(const Side &side, JsonFields &fields) {
    const std::vector<int> &tensors = segment->*side.tensors;
    auto elements = fields.elements(side.key, true);
    if (elements.size() != tensors.size()) {
      fields.fail(side.key, "needs " + std::to_string(tensors.size()) +
                                " layouts, has " +
                                std::to_string(elements.size()));
      return;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto &[element, where] = elements[i];
      if (!element->is_string()) {
        errors.push_back(where + ": must be a layout such as \"[dp, -, tp]\"");
        continue;
      }
      auto one = layout(element->get<std::string>(),
                        segment->tensors[at(tensors[i])].shape, where);
      (plan.*side.layouts).push_back(one.value_or(Layout{}));
    }
  }

  void readChanges(JsonFields &fields) {
    for (const auto &[element, where] : fields.elements("changes", true)) {
      std::size_t before = errors.size();
      JsonFields one(*element, where, errors);
      std::string key = one.text("value");
      std::size_t phase = one.oneOf("phase", {kPhases[0], kPhases[1]});
      std::string from = one.text("from"), to = one.text("to");
      one.rejectOthers();
      if (errors.size() != before)
        continue;
      auto found = std::ranges::find(keys, key);
      auto t = static_cast<std::size_t>(found - keys.begin());
      if (found == keys.end()) {
        one.fail("value", "the segment has no value \"" + key + '"');
        continue;
      }
      const std::vector<std::int64_t> &shape = segment->tensors[t].shape;
      auto a = layout(from, shape, one.pointerTo("from"));
      auto b = layout(to, shape, one.pointerTo("to"));
      if (a && b)
        plan.conversions.push_back(
            {static_cast<int>(t), planner::Phase(phase), *a, *b});
    }
  }

  // Fills in `made`, the layouts of results, stored parameters and received
  // values.
  void fillMade() {
    for (std::size_t o = 0; o < segment->ops.size(); ++o)
      for (std::size_t i = 0; i < segment->ops[o].results.size(); ++i)
        plan.made[at(segment->ops[o].results[i].tensor)] =
            planner::resultLayout(segment->ops[o], plan.strategies[o],
                                  static_cast<int>(i));
    for (std::size_t t = 0; t < segment->tensors.size(); ++t)
      if (segment->tensors[t].kind == planner::TensorKind::parameter)
        plan.made[t] =
            plan.parameters[at(segment->tensors[t].parameter)]->stored;
    for (const Side &side : kSides)
      for (std::size_t i = 0; side.makes && i < (segment->*side.tensors).size();
           ++i)
        plan.made[at((segment->*side.tensors)[i])] = (plan.*side.layouts)[i];
  }

  const planner::ModelGraph &model;
  const planner::Setting &setting;
  std::vector<std::string> &errors;
  const SegmentGraph *segment = nullptr;
  std::vector<std::string> keys;
  SegmentPlan plan;
};

} // namespace

json candidateJson(const Problem &problem,
                   const planner::PlannedCandidate &plan) {
  const planner::Mesh mesh = planner::meshOf(plan.config);
  json runs = json::array(), parts = json::array();
  for (const std::vector<SegmentPlan> &part : plan.parts) {
    json held = json::array();
    for (const SegmentPlan &one : part) {
      json run = runJson(problem.graph, one, mesh);
      auto same = std::ranges::find(runs, run);
      held.push_back({{"run", same - runs.begin()},
                      {"first", one.first},
                      {"copies", one.count}});
      if (same == runs.end())
        runs.push_back(std::move(run));
    }
    parts.push_back(std::move(held));
  }
  return {{"parallelism", configJson(plan.config)},
          {"step_time_s", plan.time.step.value},
          {"at_least_s", plan.lowerBound.value},
          {"optimal", plan.optimal},
          {"parts", std::move(parts)},
          {"runs", std::move(runs)}};
}

planner::Seconds savedSeconds(JsonFields &fields, const char *key) {
  const json *value = fields.need(key);
  if (value && value->is_null())
    return {std::numeric_limits<double>::infinity()};
  return {value ? fields.number(key, {}) : 0.0};
}

planner::PlannedParts readParts(JsonFields &plan,
                                const planner::ModelGraph &graph,
                                const planner::Setting &setting,
                                const std::vector<int> &layers,
                                std::vector<std::string> &notes) {
  planner::PlannedParts held;
  std::vector<SegmentPlan> runs;
  for (const auto &[value, pointer] : plan.elements("runs", true))
    if (auto run = RunReader(graph, setting, notes).read(*value, pointer))
      runs.push_back(std::move(*run));
    else
      return held;
  const std::vector<planner::PipelinePart> wanted =
      planner::pipelineParts(graph, layers);
  auto parts = plan.elements("parts", true);
  if (parts.size() != wanted.size()) {
    plan.fail("parts", fmt::format("has {} parts, stage_layers has {}",
                                   parts.size(), wanted.size()));
    return held;
  }
  for (std::size_t part = 0; part < parts.size(); ++part) {
    held.emplace_back();
    planner::PipelinePart found;
    const auto &[list, pointer] = parts[part];
    if (!list->is_array()) {
      notes.push_back(pointer + ": must be an array");
      return held;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      JsonFields one((*list)[i], base::childPointer(pointer, i), notes);
      int run = savedCount(one, "run"), first = savedCount(one, "first");
      int copies = savedCount(one, "copies");
      one.rejectOthers();
      if (at(run) >= runs.size()) {
        one.fail("run", fmt::format("is {}, of {} runs", run, runs.size()));
        return held;
      }
      held.back().push_back(runs[at(run)]);
      SegmentPlan &placed = held.back().back();
      placed.first = first;
      placed.count = copies;
      int from = first - graph.segments[at(placed.segment)].first;
      if (!found.empty() && found.back().segment == placed.segment &&
          found.back().first + found.back().count == from && copies > 0)
        found.back().count += copies;
      else
        found.push_back({placed.segment, from, copies});
    }
    if (found != wanted[part])
      notes.push_back(pointer + ": does not hold each layer once, as "
                                "stage_layers deals them out");
  }
  return held;
}

} // namespace mtplan::tools

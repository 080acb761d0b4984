//===- saved_run.cpp - A run of equal layers in a saved plan --------------===//

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "planner/index.h"
#include "tools/driver/saved_plan.h"
#include "tools/driver/strategy_text.h"

namespace mtplan::tools {

using json = base::Json;
using nlohmann::ordered_json;
using planner::at;
using planner::Layout;
using planner::SegmentGraph;
using planner::SegmentPlan;

namespace {

const char *const kPhases[] = {"forward", "backward"};

// Returns the keys of tensors: their names, with a number after the first of
// several equal names.
std::vector<std::string> keysOf(const SegmentGraph &segment) {
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const planner::Tensor &tensor : segment.tensors)
    keys.push_back(seen.insert(tensor.name).second
                       ? tensor.name
                       : tensor.name + '@' + std::to_string(keys.size()));
  return keys;
}

/// The values at one boundary between segments, in the plan's order.
struct Side {
  const char *key;
  std::vector<int> SegmentGraph::*tensors;
  std::vector<Layout> SegmentPlan::*layouts;
  bool makes; ///< the segment receives the value there
};
constexpr Side kSides[] = {
    {"carried_in", &SegmentGraph::carriedIn, &SegmentPlan::carriedIn, true},
    {"gradient_out", &SegmentGraph::gradientOut, &SegmentPlan::gradientOut,
     false},
    {"carried_out", &SegmentGraph::carriedOut, &SegmentPlan::carriedOut, false},
    {"gradient_in", &SegmentGraph::gradientIn, &SegmentPlan::gradientIn, true}};

// Returns which values of forward are read by backward.
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

} // namespace

ordered_json runJson(const planner::ModelGraph &graph, const SegmentPlan &run,
                     const planner::Mesh &mesh) {
  const SegmentGraph &segment = graph.segments[at(run.segment)];
  auto text = [&](const Layout &layout) {
    return planner::toString(layout, mesh);
  };
  std::vector<std::string> keys = keysOf(segment);
  ordered_json value = {{"segment", segment.name}};
  ordered_json &ops = value["operators"] = ordered_json::object();
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    ops[segment.ops[o].name] =
        strategyText(segment.ops[o], run.strategies[o], mesh);
  ordered_json &parameters = value["parameters"] = ordered_json::object();
  for (std::size_t p = 0; p < run.parameters.size(); ++p) {
    if (!run.parameters[p])
      continue;
    const planner::ParameterState &state = *run.parameters[p];
    ordered_json &entry = parameters[graph.parameters[p].name];
    entry["stored"] = text(state.stored);
    if (state.reduceOncePerStep)
      entry["reduce_once_per_step"] = true;
    if (!state.optimizer.dims.empty())
      entry["optimizer"] = text(state.optimizer);
    if (state.gradientIsSplit)
      entry["gradient_is_split"] = true;
  }
  ordered_json &kept = value["kept"] = ordered_json::object();
  for (std::size_t t = 0; t < run.saved.size(); ++t)
    if (run.saved[t])
      kept[keys[t]] = text(*run.saved[t]);
  for (const Side &side : kSides) {
    ordered_json &layouts = value[side.key] = ordered_json::array();
    for (const Layout &layout : run.*side.layouts)
      layouts.push_back(text(layout));
  }
  ordered_json &changes = value["changes"] = ordered_json::array();
  for (const planner::PlannedConversion &change : run.conversions)
    changes.push_back({{"value", keys[at(change.tensor)]},
                       {"phase", kPhases[static_cast<int>(change.phase)]},
                       {"from", text(change.from)},
                       {"to", text(change.to)}});
  return value;
}

namespace {

class RunReader {
public:
  RunReader(const planner::ModelGraph &graph, const planner::Setting &s,
            std::vector<std::string> &findings)
      : model(graph), setting(s), errors(findings) {}

  std::optional<SegmentPlan> read(const json &value, const std::string &where) {
    std::size_t before = errors.size();
    base::JsonFields fields(value, where, errors);
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
    readOperators(fields);
    readParameters(fields);
    readKept(fields);
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

  void readOperators(base::JsonFields &fields) {
    const json *value = fields.need("operators");
    if (!value)
      return;
    base::JsonFields ops(*value, fields.pointerTo("operators"), errors);
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
    ops.rejectOthers();
  }

  void readParameters(base::JsonFields &fields) {
    const json *value = fields.need("parameters");
    if (!value)
      return;
    base::JsonFields all(*value, fields.pointerTo("parameters"), errors);
    for (const planner::Tensor &tensor : segment->tensors) {
      if (tensor.kind != planner::TensorKind::parameter)
        continue;
      const planner::Parameter &parameter =
          model.parameters[at(tensor.parameter)];
      const json *entry = all.need(parameter.name);
      if (!entry)
        continue;
      base::JsonFields one(*entry, all.pointerTo(parameter.name), errors);
      planner::ParameterState state;
      auto read = [&](const char *key, bool needed, Layout &into) {
        if (!needed && !one.find(key))
          return;
        std::size_t before = errors.size();
        std::string text = one.text(key);
        if (errors.size() == before)
          into = layout(text, parameter.shape, one.pointerTo(key))
                     .value_or(Layout{});
      };
      read("stored", true, state.stored);
      state.reduceOncePerStep = one.boolean("reduce_once_per_step", false);
      read("optimizer", false, state.optimizer);
      state.gradientIsSplit = one.boolean("gradient_is_split", false);
      one.rejectOthers();
      // A parameter state must be one that the ZeRO stage allows.
      auto states = planner::parameterStates(model, tensor.parameter, setting);
      if (!state.stored.dims.empty() &&
          std::ranges::find(states, state) == states.end())
        all.fail(parameter.name, "no plan with ZeRO stage " +
                                     std::to_string(setting.zeroStage) +
                                     " and these splits keeps it so");
      plan.parameters[at(tensor.parameter)] = state;
    }
    all.rejectOthers();
  }

  void readKept(base::JsonFields &fields) {
    const json *value = fields.need("kept");
    if (!value)
      return;
    base::JsonFields kept(*value, fields.pointerTo("kept"), errors);
    std::vector<bool> wanted = keptFor(*segment);
    for (std::size_t t = 0; t < wanted.size(); ++t) {
      if (!wanted[t])
        continue;
      const std::string &key = keys[t];
      std::size_t before = errors.size();
      std::string text = kept.text(key);
      if (errors.size() == before)
        plan.saved[t] =
            layout(text, segment->tensors[t].shape, kept.pointerTo(key));
    }
    kept.rejectOthers();
  }

  void readSide(const Side &side, base::JsonFields &fields) {
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

  void readChanges(base::JsonFields &fields) {
    for (const auto &[element, where] : fields.elements("changes", true)) {
      std::size_t before = errors.size();
      base::JsonFields one(*element, where, errors);
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

  // Fills in the layouts that the strategies determine.
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
  std::vector<std::string> keys; ///< keys of tensors, by index
  SegmentPlan plan;
};

} // namespace

std::optional<SegmentPlan> readRun(const json &value,
                                   const std::string &pointer,
                                   const planner::ModelGraph &graph,
                                   const planner::Setting &setting,
                                   std::vector<std::string> &errors) {
  return RunReader(graph, setting, errors).read(value, pointer);
}

} // namespace mtplan::tools

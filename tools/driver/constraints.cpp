//===- constraints.cpp - Flags in a file ----------------------------------===//

#include "tools/driver/constraints.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "planner/integers.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

using json = base::Json;
using Kind = FlagKind;

namespace {

constexpr std::int64_t kConstraintsVersion = 1;

/// Returns a JSON value as command-line text. Returns nothing if flags of this
/// kind cannot have the value.
std::optional<std::string> typed(const json &value, Kind kind) {
  bool counts = kind == Kind::count || kind == Kind::counts;
  if (counts && value.is_number_integer())
    return value.dump();
  if (kind == Kind::number && value.is_number())
    return value.dump();
  if (kind == Kind::counts && value.is_string())
    return value.get<std::string>();
  if ((kind == Kind::word || kind == Kind::words) && value.is_string())
    return value.get<std::string>();
  if (kind == Kind::word && value.is_boolean())
    return value.get<bool>() ? "on" : "off";
  if ((kind != Kind::counts && kind != Kind::words) || !value.is_array() ||
      value.empty())
    return std::nullopt;
  std::string list;
  for (const json &one : value) {
    std::optional<std::string> text =
        one.is_array() || one == "any" ||
                (kind == Kind::counts && one.is_string())
            ? std::nullopt
            : typed(one, kind);
    if (!text)
      return std::nullopt;
    list += (list.empty() ? "" : ",") + *text;
  }
  return list;
}

const char *wantedBy(Kind kind) {
  switch (kind) {
  case Kind::count:
    return "must be a whole number";
  case Kind::counts:
    return "must be a whole number, an array of them, or \"any\"";
  case Kind::number:
    return "must be a number";
  case Kind::word:
    return "must be a text";
  case Kind::words:
    return "must be a text or an array of texts";
  case Kind::text:
  case Kind::list:
  case Kind::pair:
  case Kind::onOrAbsent:
    break;
  }
  return "?";
}

void addFlag(const FlagRow &row, const json &value, const std::string &file,
             base::JsonFields &fields, Flags &flags,
             std::vector<std::string> &errors) {
  const std::string key = row.key(), flag = row.shortName();
  std::optional<std::string> text = typed(value, row.value.kind);
  if (!text) {
    fields.fail(key, wantedBy(row.value.kind));
    return;
  }
  const std::string place = file + ": " + fields.pointerTo(key);
  const std::string *given = flags.find(flag);
  if (!given) {
    flags.texts[flag] = *text;
    flags.locations[flag] = place;
  } else if (*given != *text) {
    errors.push_back(fmt::format("{}: is {} here, but {} says {}: give one "
                                 "of the two",
                                 flag, *given, place, *text));
  }
}

void addObject(const json &object, bool isFile, const std::string &pointer,
               const std::string &file, Flags &flags,
               std::vector<std::string> &errors) {
  base::JsonErrors notes;
  base::JsonFields fields(object, pointer, notes);
  if (isFile)
    fields.integer("mtplan_constraints", kConstraintsVersion,
                   kConstraintsVersion);
  for (const FlagRow &row : flagRows())
    if (row.scope & kConstraint)
      if (const json *value = fields.find(row.key()))
        addFlag(row, *value, file, fields, flags, errors);
  if (fields.find("pins"))
    for (const auto &[pin, where] : fields.elements("pins", false)) {
      if (pin->is_string())
        flags.lists["--pin"].push_back(pin->get<std::string>());
      else
        notes.push_back(where + ": must be a text such as "
                                "\"h.*.mlp.fc1=column\"");
    }
  fields.rejectOthers();
  for (const std::string &note : notes)
    addLines(note, file, errors);
}

/// Maps a layer's index to the value of a pin in that layer.
using Values = std::map<int, std::string>;

/// Lists pairs of a label of an operator or parameter and the values of its
/// pins, in order of appearance.
using Labels = std::vector<std::pair<std::string, Values>>;

void note(Labels &labels, const std::string &label,
          const planner::SegmentPlan &run, const std::string &value) {
  auto entry =
      std::ranges::find(labels, label, &std::pair<std::string, Values>::first);
  if (entry == labels.end())
    entry = labels.insert(entry, {label, {}});
  for (int copy = run.first; copy < run.first + run.count; ++copy)
    entry->second[copy] = value;
}

// Returns "[tp,-]", with an entry per dimension of the stored parameter, or
// "[tp+tp2,-]" with two tensor axes.
std::string entriesOf(const planner::ParameterState &state,
                      const planner::Mesh &mesh) {
  std::string entries;
  for (const std::vector<int> &dim : state.stored.dims) {
    std::string names;
    for (int axis : planner::tensorAxesOf(mesh))
      if (planner::contains(dim, axis))
        names += (names.empty() ? "" : "+") + mesh.axes[planner::at(axis)].name;
    entries += (entries.empty() ? "[" : ",") + (names.empty() ? "-" : names);
  }
  return entries.empty() ? "[]" : entries + ']';
}

// Writes one pin if all layers, and all other labels that the pattern matches,
// have the same value. Otherwise writes a pin per run of consecutive layers
// with the same value.
void writePins(const std::string &label, const Values &values,
               const Labels &labels, std::vector<std::string> &pins) {
  const std::string &value = values.begin()->second;
  bool alike = std::ranges::all_of(labels, [&](const auto &other) {
    return !planner::matchesPattern(label, other.first) ||
           std::ranges::all_of(other.second, [&](const auto &one) {
             return one.second == value;
           });
  });
  std::size_t star = label.find('*');
  if (alike || star == label.npos) {
    pins.push_back(label + '=' + value);
    return;
  }
  for (auto one = values.begin(); one != values.end();) {
    auto last = one, next = std::next(one);
    while (next != values.end() && next->first == last->first + 1 &&
           next->second == one->second)
      last = next++;
    std::string copies = std::to_string(one->first);
    if (last != one)
      copies += ".." + std::to_string(last->first);
    pins.push_back(label.substr(0, star) + copies + label.substr(star + 1) +
                   '=' + one->second);
    one = next;
  }
}

std::vector<std::string> pinsOf(const planner::ModelGraph &model,
                                const planner::PlannedCandidate &plan) {
  using planner::at;
  const planner::Mesh mesh = planner::meshOf(plan.config);
  Labels operators, parameters;
  for (const planner::SegmentPlan &run : plan.plans()) {
    const auto &ops = model.segments[at(run.segment)].ops;
    for (std::size_t o = 0; o < ops.size(); ++o)
      note(operators, ops[o].name, run,
           planner::wordOf(ops[o], run.strategies[o],
                           planner::tensorAxisOf(mesh)));
    for (std::size_t p = 0; p < run.parameters.size(); ++p)
      if (run.parameters[p])
        note(parameters, model.parameters[p].name, run,
             entriesOf(*run.parameters[p], mesh));
  }
  std::vector<std::string> pins;
  for (const Labels *labels : {&operators, &parameters})
    for (const auto &[label, values] : *labels)
      writePins(label, values, *labels, pins);
  return pins;
}

} // namespace

void addConstraints(const json &object, const std::string &pointer,
                    const std::string &file, Flags &flags,
                    std::vector<std::string> &errors) {
  addObject(object, false, pointer, file, flags, errors);
}

void addConstraints(const std::string &file, Flags &flags,
                    std::vector<std::string> &errors) {
  std::optional<std::string> text = readTextFile(file, errors);
  if (!text)
    return;
  try {
    addObject(base::parseJson(*text), true, "", file, flags, errors);
  } catch (const base::JsonError &error) {
    addLines(error.what(), file, errors);
  }
}

void addConstraintsOfText(const std::string &text, const std::string &name,
                          Flags &flags, std::vector<std::string> &errors) {
  try {
    addObject(base::parseJson(text), false, "", name, flags, errors);
  } catch (const base::JsonError &error) {
    addLines(error.what(), name, errors);
  }
}

json constraintsOf(const PlanRequest &request, const Problem &problem) {
  json constraints;
  for (const FlagRow &row : flagRows())
    if (row.write)
      if (json value = row.write(request, problem.options); !value.is_null())
        constraints[row.key()] = std::move(value);
  if (!request.pins.empty()) {
    constraints["pins"] = json::array();
    for (const planner::PinText &pin : request.pins)
      constraints["pins"].push_back(pin.text);
  }
  return constraints;
}

std::string constraintsOf(const PlanRequest &request, const Problem &problem,
                          const planner::PlannedCandidate &plan) {
  const planner::Parallelism &config = plan.config;
  json file = {{"mtplan_constraints", kConstraintsVersion}};
  file.update(constraintsOf(request, problem));
  file["micro_batch"] = config.microBatch;
  file["tp"] = config.tp;
  file["tp_axes"] = 1;
  if (config.tp2 > 1) {
    file["tp_axes"] = {config.tp / config.tp2, config.tp2};
    file["splits"] = json::array();
    for (planner::Split split : problem.options.splitsOfTwoAxes)
      file["splits"].push_back(nameOf(split));
  }
  file["dp"] = config.dp;
  file["pp"] = config.pp;
  file["cp"] = config.cp;
  file["ep"] = config.ep;
  file["schedule"] = nameOf(config.schedule);
  file["vp"] = config.virtualStages;
  file.erase("stage_layers");
  if (config.pp > 1)
    file["stage_layers"] = config.layers;
  file["zero"] = config.zeroStage;
  file.erase("zero_ranks");
  if (config.zeroStage > 0)
    file["zero_ranks"] = config.zeroRanks;
  file["recompute"] = nameOf(config.recompute);
  file.erase("recompute_layers");
  if (config.recompute == planner::Recompute::full &&
      config.recomputeLayers > 0)
    file["recompute_layers"] = config.recomputeLayers;
  file["offload"] = nameOf(config.offload);
  file["tiles"] = config.tiles;
  file.erase("pins");
  for (const char *listing : {"top", "objective", "budget_seconds"})
    file.erase(listing);
  if (config.tp > 1)
    file["pins"] = pinsOf(problem.graph, plan);
  return file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         '\n';
}

} // namespace mtplan::tools

//===- constraints.cpp - Flags as a file ----------------------------------===//

#include "tools/constraints.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/json_fields.h"
#include "planner/json_text.h"
#include "planner/search/enumerate.h"
#include "tools/text_file.h"

namespace mtplan::tools {

using nlohmann::json;
using Kind = FlagKey::Kind;

namespace {

constexpr std::int64_t kConstraintsVersion = 1;

/// One value as a person would type it; nothing if a flag has no such value.
std::optional<std::string> typed(const json &value, Kind kind) {
  bool counts = kind == Kind::count || kind == Kind::counts;
  if (counts && value.is_number_integer())
    return value.dump();
  if (kind == Kind::number && value.is_number())
    return value.dump();
  if (kind == Kind::counts && value == "any")
    return "any";
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
        one.is_array() || one == "any" ? std::nullopt : typed(one, kind);
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
  }
  return "?";
}

class Adding {
public:
  Adding(const std::string &pointer, const std::string &theFile,
         Flags &theFlags)
      : where(pointer), file(theFile), flags(theFlags) {}

  void run(const json &object, bool isFile, std::vector<std::string> &errors) {
    planner::JsonErrors notes;
    planner::JsonFields fields(object, where, notes);
    if (isFile)
      fields.integer("mtplan_constraints", kConstraintsVersion,
                     kConstraintsVersion);
    for (const FlagKey &key : flagKeys())
      if (const json *value = fields.find(key.key))
        add(key, *value, fields, errors);
    if (fields.find("pins"))
      addPins(fields, notes);
    fields.rejectOthers();
    for (const std::string &note : notes)
      addLines(note, file, errors);
  }

private:
  void add(const FlagKey &key, const json &value, planner::JsonFields &fields,
           std::vector<std::string> &errors) {
    std::optional<std::string> text = typed(value, key.kind);
    if (!text) {
      fields.fail(key.key, wantedBy(key.kind));
      return;
    }
    Flags::Text &flag = flags.*key.text;
    std::string place = file + ": " + fields.pointerTo(key.key);
    if (!flag) {
      flag = *text;
      flags.places[key.flag] = place;
    } else if (*flag != *text) {
      errors.push_back(fmt::format("{}: is {} here, but {} says {}: give one "
                                   "of the two",
                                   key.flag, *flag, place, *text));
    }
  }

  void addPins(planner::JsonFields &fields, planner::JsonErrors &notes) {
    for (const auto &[pin, pointer] : fields.elements("pins", false)) {
      if (pin->is_string())
        flags.pins.push_back(pin->get<std::string>());
      else
        notes.push_back(pointer + ": must be a text such as "
                                  "\"h.*.mlp.fc1=column\"");
    }
  }

  const std::string &where, &file;
  Flags &flags;
};

} // namespace

void addConstraints(const json &object, const std::string &pointer,
                    const std::string &file, Flags &flags,
                    std::vector<std::string> &errors) {
  Adding(pointer, file, flags).run(object, false, errors);
}

void addConstraints(const std::string &file, Flags &flags,
                    std::vector<std::string> &errors) {
  std::optional<std::string> text = readTextFile(file, errors);
  if (!text)
    return;
  try {
    Adding("", file, flags).run(planner::parseJsonText(*text), true, errors);
  } catch (const planner::JsonTextError &error) {
    addLines(error.what(), file, errors);
  }
}

namespace {

using Ordered = nlohmann::ordered_json;

template <typename Value, typename Meaning>
Ordered choicesJson(const planner::Choices<Value> &choices, Meaning meaning) {
  if (choices.only.empty())
    return "any";
  if (choices.only.size() == 1)
    return meaning(choices.only.front());
  Ordered list = Ordered::array();
  for (Value value : choices.only)
    list.push_back(meaning(value));
  return list;
}

Ordered overlapJson(const planner::Overlaps &overlaps) {
  Ordered list = Ordered::array();
  bool all = true;
  for (auto [word, is] : {std::pair("gather", overlaps.gather),
                          std::pair("reduce", overlaps.reduce),
                          std::pair("sends", overlaps.pointToPoint),
                          std::pair("host", overlaps.up)}) {
    all = all && is;
    if (is)
      list.push_back(word);
  }
  if (list.empty())
    return "off";
  return all ? Ordered("on") : list;
}

} // namespace

Ordered constraintsOf(const PlanRequest &request, const Problem &problem) {
  const planner::SearchOptions &options = problem.options;
  auto itself = [](auto value) { return Ordered(value); };
  auto named = [](auto value) { return Ordered(nameOf(value)); };
  Ordered said;
  said["gpus"] = options.devices;
  said["hardware"] = request.hardware;
  if (!request.software.empty())
    said["software"] = request.software;
  if (request.networkScale != 1.0)
    said["scale_network"] = request.networkScale;
  if (request.memory)
    said["memory_gib"] = request.memory->value / (1024.0 * 1024.0 * 1024.0);
  said["precision"] = nameOf(options.precision);
  if (request.sequence)
    said["seq"] = *request.sequence;
  if (request.layers)
    said["layers"] = *request.layers;
  said["global_batch"] = options.globalBatch;
  if (options.microBatch)
    said["micro_batch"] = *options.microBatch;
  if (options.tp)
    said["tp"] = *options.tp;
  if (options.dp)
    said["dp"] = *options.dp;
  said["pp"] = choicesJson(options.pp, itself);
  said["cp"] = choicesJson(options.cp, itself);
  said["ep"] = choicesJson(options.ep, itself);
  said["schedule"] = choicesJson(options.schedule, named);
  said["vp"] = choicesJson(options.virtualStages, itself);
  if (!options.layers.empty())
    said["stage_layers"] = options.layers;
  else if (options.unevenCuts)
    said["stage_layers"] = "any";
  said["zero"] = choicesJson(options.zeroStage, itself);
  if (options.zeroRanks.only != std::vector{0})
    said["zero_ranks"] = choicesJson(options.zeroRanks, itself);
  said["recompute"] = choicesJson(options.recompute, named);
  if (planner::isCounted(options))
    said["recompute_layers"] = choicesJson(options.recomputeLayers, itself);
  said["offload"] = choicesJson(options.offload, named);
  said["tiles"] = choicesJson(options.tiles, itself);
  said["overlap"] = overlapJson(options.overlaps);
  Ordered splits = Ordered::array();
  for (planner::Split split : options.tensorSplits)
    splits.push_back(nameOf(split));
  said["splits"] = std::move(splits);
  if (request.objective != Objective::stepTime)
    said["objective"] = nameOf(request.objective);
  if (request.maxStepTime)
    said["max_step_time"] = request.maxStepTime->value;
  if (request.budget)
    said["budget_seconds"] = request.budget->value;
  said["top"] = options.top;
  if (!request.pins.empty()) {
    said["pins"] = Ordered::array();
    for (const planner::PinText &pin : request.pins)
      said["pins"].push_back(pin.text);
  }
  return said;
}

} // namespace mtplan::tools

//===- preset_files_json.cpp - Machine and software presets ---------------===//

#include "planner/machine/preset_files_json.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/nearest_word.h"

namespace mtplan::planner {

using json = base::Json;

std::vector<std::string> namesOf(std::span<const Preset> presets) {
  std::vector<std::string> names;
  names.reserve(presets.size());
  for (const Preset &preset : presets)
    names.emplace_back(preset.name);
  return names;
}

std::optional<std::string> textOf(std::span<const Preset> presets,
                                  const std::string &nameOrPath) {
  for (const Preset &preset : presets)
    if (nameOrPath == preset.name)
      return preset.text;
  std::error_code ignored;
  std::ifstream file;
  if (std::filesystem::is_regular_file(nameOrPath, ignored))
    file.open(nameOrPath, std::ios::binary);
  if (!file.is_open())
    return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string notFound(const char *kind, std::span<const Preset> presets,
                     const std::string &nameOrPath) {
  return std::string("no ") + kind + " file \"" + nameOrPath +
         "\" can be read, and the presets are: " +
         base::listed(namesOf(presets), ", ");
}

namespace {

// Returns, for each device, the first preset that describes it in full.
std::vector<json> describingPresets() {
  std::vector<json> found;
  for (const Preset &preset : machinePresets()) {
    json file = base::parseJson(preset.text);
    const json &device = file["device"];
    if (!device.is_object() || device.contains("like"))
      continue;
    if (std::ranges::none_of(found, [&](const json &other) {
          return other["device"]["name"] == device["name"];
        }))
      found.push_back(std::move(file));
  }
  return found;
}

// Returns the preset whose device is `name`; null, with an error, if there is
// none.
json presetOf(const std::string &name, const std::string &pointer,
              base::JsonErrors &errors) {
  std::vector<json> presets = describingPresets();
  for (json &preset : presets)
    if (preset["device"]["name"] == name)
      return std::move(preset);
  std::vector<std::string> names = knownDevices();
  errors.push_back(pointer + ": no preset has a device \"" + name +
                   "\"; the nearest is \"" +
                   std::string(base::nearestTo(name, names)) +
                   "\"; known devices: " + base::listed(names, ", "));
  return nullptr;
}

// Returns the preset's `device` with its members replaced by those of `own`.
json patched(json device, const json &own) {
  // The file's memory replaces the preset's even if the units differ.
  if (own.contains("memory_GB") || own.contains("memory_GiB")) {
    device.erase("memory_GB");
    device.erase("memory_GiB");
  }
  for (const auto &[key, value] : own.items())
    if (key != "like")
      device[key] = value;
  return device;
}

} // namespace

std::vector<std::string> knownDevices() {
  std::vector<std::string> names;
  for (const json &preset : describingPresets())
    names.push_back(preset["device"]["name"].get<std::string>());
  return names;
}

void completeDevice(json &file, base::JsonErrors &errors) {
  if (!file.is_object() || !file.contains("device"))
    return;
  json &device = file["device"];
  bool isName = device.is_string();
  if (!isName && !(device.is_object() && device.contains("like")))
    return;
  if (!isName && !device["like"].is_string()) {
    errors.emplace_back("/device/like: must be text, the name of a device");
    file.erase("device");
    return;
  }
  json preset = presetOf((isName ? device : device["like"]).get<std::string>(),
                         isName ? "/device" : "/device/like", errors);
  if (preset.is_null()) {
    file.erase("device");
    return;
  }
  device = isName ? preset["device"] : patched(preset["device"], device);
  if (!file.contains("default_precision"))
    file["default_precision"] = preset["default_precision"];
}

const json *SourcedFields::value(const std::string &key) {
  const json *quantity = plain.find(key);
  if (!quantity)
    return nullptr;
  std::string pointer = plain.pointerTo(key);
  if (!quantity->is_object()) {
    errors.push_back(pointer + ": needs a source; write {\"value\": ..., "
                               "\"source\": \"where it is from\"}");
    return nullptr;
  }
  base::JsonFields fields(*quantity, pointer, errors);
  const json *inner = fields.need("value");
  const json *source = fields.find("source");
  if (!source || !source->is_string() ||
      source->get<std::string>().find_first_not_of(" \t\r\n") ==
          std::string::npos)
    fields.fail("source", "must say where the number is from");
  fields.rejectOthers();
  return inner;
}

std::optional<double> SourcedFields::optional(const std::string &key,
                                              const base::NumberRange &range) {
  const json *inner = value(key);
  if (!inner)
    return std::nullopt;
  return base::readNumber(*inner, pointerTo(key), range, errors);
}

double SourcedFields::number(const std::string &key,
                             const base::NumberRange &range) {
  plain.need(key);
  return optional(key, range).value_or(range.least);
}

double SourcedFields::number(const std::string &key,
                             const base::NumberRange &range, double fallback) {
  return optional(key, range).value_or(fallback);
}

std::int64_t SourcedFields::count(const std::string &key, std::int64_t most) {
  plain.need(key);
  const json *inner = value(key);
  if (!inner)
    return 1;
  return base::readInteger(*inner, pointerTo(key), 1, most, errors).value_or(1);
}

bool SourcedFields::flag(const std::string &key) {
  plain.need(key);
  if (!value(key))
    return false;
  base::JsonFields fields(*plain.find(key), plain.pointerTo(key), errors);
  return fields.boolean("value", false);
}

const json *SourcedFields::list(const std::string &key, const char *kind) {
  const json *given = value(key);
  if (!given || (given->is_array() && !given->empty()))
    return given;
  errors.push_back(pointerTo(key) + ": must be an array" + kind +
                   ", not empty");
  return nullptr;
}

std::vector<std::vector<double>>
SourcedFields::rows(const std::string &key,
                    const std::vector<base::NumberRange> &ranges) {
  std::vector<std::vector<double>> result;
  const json *given = list(key, "");
  for (std::size_t i = 0; given && i < given->size(); ++i) {
    const json &row = (*given)[i];
    std::string pointer = base::childPointer(pointerTo(key), i);
    if (!row.is_array() || row.size() != ranges.size()) {
      errors.push_back(pointer + ": must be an array of " +
                       std::to_string(ranges.size()) + " numbers");
      continue;
    }
    result.emplace_back();
    for (std::size_t c = 0; c < ranges.size(); ++c)
      result.back().push_back(base::readNumber(row[c],
                                               base::childPointer(pointer, c),
                                               ranges[c], errors)
                                  .value_or(1));
  }
  return result;
}

std::vector<std::string> SourcedFields::texts(const std::string &key) {
  std::vector<std::string> result;
  plain.need(key);
  const json *given = list(key, "");
  for (std::size_t i = 0; given && i < given->size(); ++i)
    if (const json &text = (*given)[i]; text.is_string())
      result.push_back(text.get<std::string>());
    else
      errors.push_back(base::childPointer(pointerTo(key), i) +
                       ": must be a string");
  return result;
}

std::vector<double> SourcedFields::numbers(const std::string &key,
                                           const base::NumberRange &range) {
  std::vector<double> result;
  const json *given = list(key, " of numbers");
  for (std::size_t i = 0; given && i < given->size(); ++i)
    result.push_back(base::readNumber((*given)[i],
                                      base::childPointer(pointerTo(key), i),
                                      range, errors)
                         .value_or(1));
  return result;
}

} // namespace mtplan::planner

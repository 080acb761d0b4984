//===- known_device_json.cpp - Devices by name ----------------------------===//

#include "planner/machine/known_device_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/nearest_word.h"
#include "planner/machine/machine_presets.h"

namespace mtplan::planner {

using json = base::Json;

namespace {

// Returns the presets that describe a device themselves; of several with one
// device the first.
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

// Returns the preset whose device is `name`; null, with a note, if there is
// none.
json presetOf(const std::string &name, const std::string &pointer,
              base::JsonErrors &errors) {
  std::vector<json> presets = describingPresets();
  for (json &preset : presets)
    if (preset["device"]["name"] == name)
      return std::move(preset);
  std::vector<std::string> names = knownDevices();
  std::string list;
  for (const std::string &known : names)
    list += (list.empty() ? "" : ", ") + known;
  errors.push_back(
      pointer + ": no preset has a device \"" + name + "\"; nearest is \"" +
      std::string(base::nearestTo(name, names)) + "\", and known are: " + list);
  return nullptr;
}

// Replaces the known device's members by those that the file gives.
json patched(json device, const json &own) {
  // A file gives one amount of memory, in one unit.
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

} // namespace mtplan::planner

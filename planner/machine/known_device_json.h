//===- known_device_json.h - Devices by name --------------------*- C++ -*-===//
//
// A short machine file need not say what a preset says already: its device is a
// name, or like one that has a name but for the figures it gives itself.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_KNOWN_DEVICE_JSON_H
#define MTPLAN_PLANNER_MACHINE_KNOWN_DEVICE_JSON_H

#include <string>
#include <vector>

#include "planner/json_fields.h"

namespace mtplan::planner {

/// Names of the devices that presets describe, each once, in the presets'
/// order.
std::vector<std::string> knownDevices();

/// Writes /device of a machine file out in full where it is short, and gives
/// the file the preset's default precision if it has none of its own.
void completeDevice(nlohmann::json &file, JsonErrors &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_KNOWN_DEVICE_JSON_H

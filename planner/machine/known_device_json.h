//===- known_device_json.h - Devices by name --------------------*- C++ -*-===//
//
// A short machine file need not repeat a preset: its device is a name, or a
// named device with some figures of its own.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_KNOWN_DEVICE_JSON_H
#define MTPLAN_PLANNER_MACHINE_KNOWN_DEVICE_JSON_H

#include <string>
#include <vector>

#include "base/json_fields.h"

namespace mtplan::planner {

/// Returns the names of the devices that presets describe, each once, in the
/// presets' order.
std::vector<std::string> knownDevices();

/// Writes /device of a machine file out in full where it is short, and gives
/// the file the preset's default precision if it has none of its own.
void completeDevice(base::Json &file, base::JsonErrors &errors);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_KNOWN_DEVICE_JSON_H

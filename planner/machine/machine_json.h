//===- machine_json.h - Machine files, both directions ----------*- C++ -*-===//
//
// Reads and writes machine files. docs/machine-format.md describes the format.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_MACHINE_JSON_H
#define MTPLAN_PLANNER_MACHINE_MACHINE_JSON_H

#include <string>
#include <vector>

#include "planner/machine/machine.h"

namespace mtplan::planner {

/// Reads and checks a machine file's text.
/// \throws MachineError with every violation
Machine parseMachine(const std::string &text);

/// Returns the text of a machine file in which every number has `source` as its
/// source. parseMachine() of the returned text is equal to `machine`.
std::string formatMachine(const Machine &machine, const std::string &source);

/// Returns the names of the presets, sorted: "cpu", "dgx-2h", ...
std::vector<std::string> presetNames();

/// Returns the text of the preset `nameOrPath` or, if no preset has that name,
/// of the file at that path.
/// \throws MachineError with the names of the presets if neither exists
std::string machineText(const std::string &nameOrPath);

/// Returns parseMachine(machineText(nameOrPath)).
Machine loadMachine(const std::string &nameOrPath);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_MACHINE_JSON_H

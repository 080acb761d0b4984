//===- software_json.h - Software files, both directions --------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H
#define MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H

#include <string>
#include <vector>

#include "planner/machine/software.h"

namespace mtplan::planner {

/// Reads and checks a software file's text.
/// \throws SoftwareError with every violation.
Software parseSoftware(const std::string &text);

/// Returns the text of a software file in which every number has `source` as
/// its source. parseSoftware returns an equal record.
std::string formatSoftware(const Software &software, const std::string &source);

/// Returns the names of the presets, sorted: "alpa", "bloom", ...
std::vector<std::string> softwareNames();

/// Returns the text of a preset by name, else of the file at that path.
/// \throws SoftwareError naming the presets when there is neither.
std::string softwareText(const std::string &nameOrPath);

/// Returns the parsed software of softwareText.
Software loadSoftware(const std::string &nameOrPath);

/// Returns the preset "mtplan", our own runtime, which lives as long as the
/// program.
const Software &defaultSoftware();

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H

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

/// The text of a software file; every number is said to be from `source`.
/// parseSoftware gives an equal record back.
std::string formatSoftware(const Software &software, const std::string &source);

/// Names of the presets, sorted: "alpa", "bloom", ...
std::vector<std::string> softwareNames();

/// The text of a preset by name, else of the file of that path.
/// \throws SoftwareError naming the presets when there is neither.
std::string softwareText(const std::string &nameOrPath);

/// The same, parsed.
Software loadSoftware(const std::string &nameOrPath);

/// The preset "mtplan": our own runtime. Lives as long as the program.
const Software &defaultSoftware();

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H

//===- software_json.h - Software files, both directions --------*- C++ -*-===//
//
// Reads and writes software files. docs/software-format.md describes the
// format.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H
#define MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H

#include <string>
#include <vector>

#include "planner/machine/software.h"

namespace mtplan::planner {

/// Reads and checks a software file's text.
/// \throws SoftwareError with every violation
Software parseSoftware(const std::string &text);

/// Returns the text of a software file in which every number has `source` as
/// its source. parseSoftware() of the returned text is equal to `software`.
std::string formatSoftware(const Software &software, const std::string &source);

/// Returns the names of the presets, sorted: "alpa", "bloom", ...
std::vector<std::string> softwareNames();

/// Returns the text of the preset `nameOrPath` or, if no preset has that name,
/// of the file at that path.
/// \throws SoftwareError with the names of the presets if neither exists
std::string softwareText(const std::string &nameOrPath);

/// Returns parseSoftware(softwareText(nameOrPath)).
Software loadSoftware(const std::string &nameOrPath);

/// Returns the preset "mtplan", which describes mtplan's own runtime. The
/// reference is valid until the program ends.
const Software &defaultSoftware();

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_SOFTWARE_JSON_H

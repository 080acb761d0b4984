//===- constraints.h - Flags in a file --------------------------*- C++ -*-===//
//
// A constraints file is a JSON object with one key per flag: "micro_batch" is
// --micro-batch. A number is a JSON number, a list of values is an array, and
// pins are an array of strings. docs/plan-files.md lists the keys.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_CONSTRAINTS_H
#define MTPLAN_TOOLS_DRIVER_CONSTRAINTS_H

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_text.h"
#include "tools/driver/flags.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Adds the flags of a file to `flags`. A flag that is in the file and in
/// `flags` must have the same value in both. Every violation becomes an error
/// with a JSON pointer.
void addConstraints(const std::string &file, Flags &flags,
                    std::vector<std::string> &errors);

/// Adds the flags of a JSON object, which is at `pointer` in the file.
void addConstraints(const base::Json &object, const std::string &pointer,
                    const std::string &file, Flags &flags,
                    std::vector<std::string> &errors);

/// Adds the flags of `text`, a JSON object. Messages begin with `name`.
void addConstraintsOfText(const std::string &text, const std::string &name,
                          Flags &flags, std::vector<std::string> &errors);

/// Returns the flags of a request as JSON. A request with these flags builds
/// the same problem.
nlohmann::ordered_json constraintsOf(const PlanRequest &request,
                                     const Problem &problem);

/// Returns a constraints file that pins every operator and parameter, so that a
/// search under these constraints finds `plan` again.
std::string constraintsOf(const PlanRequest &request, const Problem &problem,
                          const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_CONSTRAINTS_H

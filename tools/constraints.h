//===- constraints.h - Flags as a file --------------------------*- C++ -*-===//
//
// What may be planned, as JSON: a key per flag ("micro_batch" is
// --micro-batch), numbers as numbers, several values as an array, pins as an
// array of texts. docs/plan-files.md has all keys.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_CONSTRAINTS_H
#define MTPLAN_TOOLS_CONSTRAINTS_H

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/pipeline.h"

namespace mtplan::tools {

/// Adds what the file says to `flags`. A flag that is there already must say
/// the same. Every violation becomes an error with its JSON pointer.
void addConstraints(const std::string &file, Flags &flags,
                    std::vector<std::string> &errors);

/// The same of an object that stands at `pointer` of the file.
void addConstraints(const nlohmann::json &object, const std::string &pointer,
                    const std::string &file, Flags &flags,
                    std::vector<std::string> &errors);

/// What a problem was asked for: reading it again gives the same problem.
/// \param request  from which the problem was built
nlohmann::ordered_json constraintsOf(const PlanRequest &request,
                                     const Problem &problem);

/// A constraints file that leaves nothing open: searching under it gives `plan`
/// again. All operators and parameters are pinned.
std::string constraintsOf(const PlanRequest &request, const Problem &problem,
                          const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_CONSTRAINTS_H

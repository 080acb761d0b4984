//===- executable.h - From a plan to an executable plan ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_EXECUTABLE_H
#define MTPLAN_TOOLS_DRIVER_EXECUTABLE_H

#include <optional>

#include "runtime/plan/plan.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Compiles a candidate: runs moduleOf(), the later passes and codegen. Returns
/// nothing, with errors, if the candidate has tiles, or if a pass or codegen
/// fails.
std::optional<runtime::Plan>
executableOf(const Problem &problem, const planner::PlannedCandidate &candidate,
             std::vector<std::string> &errors);

/// Creates the folder, and writes plan.json, which mtrun runs, and
/// predicted.json, the predicted step. Returns false, with errors, on a
/// failure.
/// \param withSource  whether to write the CUDA program, too; an existing file
///   with other content is an error
bool writeExecutable(const Problem &problem,
                     const planner::PlannedCandidate &candidate,
                     const std::string &folder, bool withSource,
                     std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_EXECUTABLE_H

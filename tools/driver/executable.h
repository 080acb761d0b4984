//===- executable.h - From a plan to an executable plan ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_EXECUTABLE_H
#define MTPLAN_TOOLS_DRIVER_EXECUTABLE_H

#include <optional>

#include "runtime/plan/plan.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Compiles a candidate to an executable plan: runs moduleOf(), the passes
/// after it and codegen. Returns nothing, with errors, if tiles are planned or
/// a pass or codegen fails.
std::optional<runtime::Plan>
executableOf(const Problem &problem, const planner::PlannedCandidate &candidate,
             std::vector<std::string> &errors);

/// Creates the folder, and writes two files into it: plan.json, which mtrun
/// runs, and predicted.json, the predicted step. Returns false, with errors, on
/// a failure.
/// \param withSource  also write the CUDA program; a file of the program that
///   exists with other content is an error
bool writeExecutable(const Problem &problem,
                     const planner::PlannedCandidate &candidate,
                     const std::string &folder, bool withSource,
                     std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_EXECUTABLE_H

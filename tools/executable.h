//===- executable.h - A plan, compiled --------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXECUTABLE_H
#define MTPLAN_TOOLS_EXECUTABLE_H

#include <optional>

#include "runtime/plan/plan.h"
#include "tools/pipeline.h"

namespace mtplan::tools {

/// The last passes and codegen. Nothing, with errors, if a gate objects.
std::optional<runtime::Plan>
executableOf(const Problem &problem, const planner::PlannedCandidate &candidate,
             std::vector<std::string> &errors);

/// Writes `folder`/plan.json for mtrun, and predicted.json, what it is to take;
/// makes the folder.
/// \param withSource  also train.cu and its CMakeLists.txt; such that are there
///                    and differ stay, which is an error
bool writeExecutable(const Problem &problem,
                     const planner::PlannedCandidate &candidate,
                     const std::string &folder, bool withSource,
                     std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXECUTABLE_H

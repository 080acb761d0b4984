//===- limits.h - Which meshes a model and a machine allow ------*- C++ -*-===//
//
// Refusals of numbers that do not go together, each with both numbers and the
// nearest that would. A number that nobody fixed is never refused: the search
// leaves out what does not divide.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_LIMITS_H
#define MTPLAN_TOOLS_LIMITS_H

#include <string>
#include <vector>

#include "planner/search/search.h"

namespace mtplan::tools {

/// "1 2 4 7 14 28"; the first 24 of them if there are more.
std::string divisorList(std::int64_t number);

/// Every way in which what `options` fixes cannot be.
/// \param model  null: unknown, what concerns it is left out
void checkLimits(const planner::SearchOptions &options,
                 const planner::ModelGraph *model,
                 std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_LIMITS_H

//===- limits.h - Degrees that a model and a machine allow ------*- C++ -*-===//
//
// These functions reject contradictory numbers of a request. If one number does
// not divide another, the message states both and the nearest legal numbers.
// Without this check, the search would skip such choices without a message.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_LIMITS_H
#define MTPLAN_TOOLS_DRIVER_LIMITS_H

#include <string>
#include <vector>

#include "planner/search/search.h"
#include "tools/driver/request.h"

namespace mtplan::tools {

/// Uneven cuts need a pipeline with one virtual stage per rank. If these
/// options rule out such a pipeline, returns an error with a remedy, else "".
std::string errorOfUnevenCuts(const planner::SearchOptions &options);

/// Sets tp2 and, if the sizes of two tensor axes are given, tp. Adds an error
/// if the request states a different tp.
void setTensorAxes(const PlanRequest &request, planner::SearchOptions &options,
                   std::vector<std::string> &errors);

/// Adds an error for every conflict among the numbers that `options` fixes.
/// \param model  null if unknown; limits of the model are then not checked
void checkLimits(const planner::SearchOptions &options,
                 const planner::ModelGraph *model,
                 std::vector<std::string> &errors);

/// Rejects sequence parallelism if tp is known and cannot split the sequence:
/// tp is 1, or tp times the smallest allowed cp does not divide the sequence. A
/// single GPU fixes tp to 1.
void checkSequenceParallel(const planner::SearchOptions &options,
                           std::int64_t sequence,
                           std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_LIMITS_H

//===- limits.h - Degrees that a model and a machine allow ------*- C++ -*-===//
//
// Numbers that contradict each other are rejected. If one number does not
// divide another, the message states both, and the nearest numbers that divide.
// Only numbers that the request fixes are rejected: the search skips its own
// choices that do not divide.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_LIMITS_H
#define MTPLAN_TOOLS_DRIVER_LIMITS_H

#include <string>
#include <vector>

#include "planner/search/search.h"

namespace mtplan::tools {

/// Returns an error with a remedy if no configuration of these options has a
/// pipeline with one virtual stage per rank, which uneven cuts need; otherwise
/// an empty text.
std::string errorOfUnevenCuts(const planner::SearchOptions &options);

/// Adds an error for every conflict among the numbers that `options` fixes.
/// \param model  null if unknown: limits of the model are not checked
void checkLimits(const planner::SearchOptions &options,
                 const planner::ModelGraph *model,
                 std::vector<std::string> &errors);

/// Rejects sequence parallelism if tp is known and cannot split the sequence:
/// tp is 1, or tp times the smallest allowed cp does not divide the sequence.
/// tp is known if the request fixes tp, or if there is one GPU.
void checkSequenceParallel(const planner::SearchOptions &options,
                           std::int64_t sequence,
                           std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_LIMITS_H

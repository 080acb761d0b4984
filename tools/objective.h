//===- objective.h - The least of something ---------------------*- C++ -*-===//
//
// The search makes a step as short as it can be on given devices. The fewest
// devices that do a step within some time, and the least memory that does, are
// found by searching again.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_OBJECTIVE_H
#define MTPLAN_TOOLS_OBJECTIVE_H

#include "tools/pipeline.h"

namespace mtplan::tools {

/// Numbers of GPUs that a person might have, ascending: the divisors of a node,
/// then whole nodes.
std::vector<int> gpuCounts(const planner::Machine &machine, int most);

/// Searches as the request's objective says. `attempts` of the outcome tells
/// what was tried and why it did not do.
PlanOutcome planFor(const PlanRequest &request,
                    std::vector<std::string> errors = {});

/// "GPUs  32 are the fewest ..." with a line per attempt; empty for the step
/// time.
std::string objectiveText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_OBJECTIVE_H

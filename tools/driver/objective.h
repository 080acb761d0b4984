//===- objective.h - Objectives beside the step time ------------*- C++ -*-===//
//
// One search minimizes the step time on given devices. Repeated searches find
// the fewest devices, or the least memory, for a step within some time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_OBJECTIVE_H
#define MTPLAN_TOOLS_DRIVER_OBJECTIVE_H

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns the plausible numbers of GPUs, ascending: the divisors of a node,
/// then whole nodes.
std::vector<int> gpuCounts(const planner::Machine &machine, int most);

/// Searches by the request's objective. `attempts` of the outcome holds each
/// smaller size that was tried, and why it failed.
PlanOutcome planFor(const PlanRequest &request,
                    std::vector<std::string> errors = {});

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_OBJECTIVE_H

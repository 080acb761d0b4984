//===- objective.h - Searches for other objectives --------------*- C++ -*-===//
//
// One search minimizes the step time on given devices. Repeated searches find
// the fewest devices, or the least memory, for a step within some time. If
// nothing fits, they find changes of the request under which a plan fits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_OBJECTIVE_H
#define MTPLAN_TOOLS_DRIVER_OBJECTIVE_H

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns the numbers of GPUs to try, ascending and at most `most`: divisors
/// of the GPUs of a node, then whole nodes.
std::vector<int> gpuCounts(const planner::Machine &machine, int most);

/// Searches by the request's objective. `attempts` of the outcome holds each
/// smaller number of GPUs or memory size that was tried, and why it failed.
PlanOutcome planFor(const PlanRequest &request,
                    std::vector<std::string> errors = {});

/// Returns a line that says why an outcome has no plan.
std::string failureOf(const PlanOutcome &outcome);

/// Returns the changes of the request under which a search found a plan, one
/// line each. Changes of one kind are tried one after another, a search each,
/// until one gives a plan.
std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_OBJECTIVE_H

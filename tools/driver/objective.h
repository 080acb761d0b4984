//===- objective.h - The plan that a request asks for -----------*- C++ -*-===//
//
// One search minimizes the step time on given devices. Repeated searches find
// the fewest devices or the least memory for a limited step time. If nothing
// fits, further searches find changes of the request under which a plan fits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_OBJECTIVE_H
#define MTPLAN_TOOLS_DRIVER_OBJECTIVE_H

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns the numbers of GPUs to try, in ascending order, up to `most`: the
/// divisors of the number of GPUs of a node, then multiples of that number.
std::vector<int> gpuCounts(const planner::Machine &machine, int most);

/// Returns the plan with the least step time, the fewest GPUs or the least
/// memory, whichever the request asks for.
PlanOutcome planFor(const PlanRequest &request,
                    std::vector<std::string> errors = {});

std::string failureOf(const PlanOutcome &outcome);

/// Returns a line for each change of the request under which a search found a
/// plan. Each change costs a search. Once a change succeeds, the other changes
/// of the same kind are skipped.
std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_OBJECTIVE_H

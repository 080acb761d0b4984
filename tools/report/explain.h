//===- explain.h - Why other meshes are worse -------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_EXPLAIN_H
#define MTPLAN_TOOLS_REPORT_EXPLAIN_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns "tensor communication +9.70 s, compute -1.20 s": the largest
/// differences of `plan` to `best`.
std::string differencesText(const planner::PlannedCandidate &plan,
                            const planner::PlannedCandidate &best);

/// Returns "61.2 of 31.4 GiB: optimizer 40.1, parameters 10.2", with the
/// largest classes of memory.
std::string shortageText(const planner::MemoryUse &memory);

/// Returns a line for the best plan, each other listed plan, and each mesh
/// without a plan, with its additional time or its missing memory. Where the
/// search has only a bound, the nearest candidate is solved and priced here.
std::vector<std::string> explanationsOf(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_EXPLAIN_H

//===- explain.h - Why this plan and no other -------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXPLAIN_H
#define MTPLAN_TOOLS_EXPLAIN_H

#include <string>
#include <vector>

#include "tools/pipeline.h"

namespace mtplan::tools {

/// "tensor communication +9.70 s, compute -1.20 s": the parts of the step that
/// `plan` takes longer or shorter for than `best`, those that matter.
std::string differencesText(const planner::PlannedCandidate &plan,
                            const planner::PlannedCandidate &best);

/// "61.2 of 31.4 GiB: optimizer 40.1, parameters 10.2": the largest classes.
std::string shortageText(const planner::MemoryUse &memory);

/// A line for the best plan, each other plan in the list, and each mesh that
/// has none: what it costs more, or what it lacks. Where the search had only a
/// bound, the candidate that came nearest is solved and priced now.
std::vector<std::string> explanationsOf(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXPLAIN_H

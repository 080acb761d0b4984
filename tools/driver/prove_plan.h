//===- prove_plan.h - Proves a plan by execution ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_PROVE_PLAN_H
#define MTPLAN_TOOLS_DRIVER_PROVE_PLAN_H

#include <optional>
#include <string>
#include <vector>

#include "passes/verify/prove.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Adds an error if a proof cannot run this number of ranks.
void checkProvable(int devices, std::vector<std::string> &errors);

/// Proves that a candidate, with its schedule, computes the same values as the
/// model (passes::prove()). Returns nothing, with errors, if there are too many
/// ranks, or if a verification pass rejects the candidate's module. The proof
/// uses small sizes. A candidate that is invalid at these sizes fails the
/// proof.
std::optional<passes::Proof>
provePlan(const Problem &problem, const planner::PlannedCandidate &candidate,
          std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_PROVE_PLAN_H

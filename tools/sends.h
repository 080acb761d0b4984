//===- sends.h - What pipeline stages send each other -----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_SENDS_H
#define MTPLAN_TOOLS_SENDS_H

#include <vector>

#include "tools/facts.h"

namespace mtplan::tools {

/// What one rank hands to the part of the model after its own, or back to the
/// one before, once per micro-batch.
struct Send {
  int from = 0, to = 0; ///< parts of the model, in its order
  planner::LedgerPhase phase{};
  std::string segment; ///< whose value it is
  planner::Bytes bytes;
  planner::Seconds time;
};

/// Forward ones first, in the model's order. None without a pipeline.
std::vector<Send> sendsOf(const Problem &problem, const PlanFacts &facts,
                          const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_SENDS_H

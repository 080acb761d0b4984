//===- sends.h - Messages between pipeline stages ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_SENDS_H
#define MTPLAN_TOOLS_REPORT_SENDS_H

#include <vector>

#include "tools/report/plan_facts.h"

namespace mtplan::tools {

/// A message that one rank sends to the next or to the previous virtual stage,
/// once per micro-batch.
struct Send {
  int from = 0, to = 0; ///< virtual stages, in the model's order
  planner::LedgerPhase phase{};
  std::string segment; ///< segment that produces the value
  planner::Bytes bytes;
  planner::Seconds time;
};

/// Returns the messages, forward ones first, in the model's order; none without
/// a pipeline.
std::vector<Send> sendsOf(const Problem &problem, const PlanFacts &facts,
                          const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_SENDS_H

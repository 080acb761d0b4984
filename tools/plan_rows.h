//===- plan_rows.h - A plan as rows of a table ------------------*- C++ -*-===//
//
// Forward operators in program order, neighbours that are alike in one row,
// with the collectives that what they make causes in either direction.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_PLAN_ROWS_H
#define MTPLAN_TOOLS_PLAN_ROWS_H

#include <string>
#include <vector>

#include "tools/facts.h"

namespace mtplan::tools {

struct PlanRow {
  std::string operators; ///< "attn.q, k, v"
  std::string strategy, shape;
  std::string forward, backward; ///< "all_reduce tp 6.00 MiB"; of one copy
  bool operator==(const PlanRow &) const = default;
};

std::vector<PlanRow> rowsOf(const RunFact &run, const planner::Mesh &mesh);

/// "h.3", "h.0..71", "embed": the copies of a run.
std::string nameOf(const RunFact &run);

/// Collectives of one copy and micro-batch in `phase`, equal ones counted:
/// "2 all_reduce tp 6.00 MiB"; with the time of all in `time`.
std::string summaryOf(const RunFact &run, planner::LedgerPhase phase,
                      const planner::Mesh &mesh, planner::Seconds &time);

/// The runs as a screen shows them: neighbours that look the same (as those of
/// two pipeline stages do) are one.
std::vector<RunFact> runsShown(const PlanFacts &facts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PLAN_ROWS_H

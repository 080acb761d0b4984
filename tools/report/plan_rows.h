//===- plan_rows.h - A plan as rows of a table ------------------*- C++ -*-===//
//
// Rows are forward operators in program order; equal neighbours share a row. A
// row has the collectives, forward and backward, that its results cause.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_PLAN_ROWS_H
#define MTPLAN_TOOLS_REPORT_PLAN_ROWS_H

#include <string>
#include <vector>

#include "tools/report/plan_facts.h"

namespace mtplan::tools {

struct PlanRow {
  std::string operators; ///< "attn.q, k, v"
  std::string strategy, shape;
  std::string forward, backward; ///< "all_reduce tp 6.00 MiB"; of one layer
  bool operator==(const PlanRow &) const = default;
};

/// Returns the rows of a run.
std::vector<PlanRow> rowsOf(const RunFact &run, const planner::Mesh &mesh);

/// Returns "h.3", "h.0..71" or "embed": the layers of a run.
std::string nameOf(const RunFact &run);

/// Returns the collectives per layer and micro-batch in `phase`, with equal
/// ones counted: "2 all_reduce tp 6.00 MiB". `time` receives their total time.
std::string summaryOf(const RunFact &run, planner::LedgerPhase phase,
                      const planner::Mesh &mesh, planner::Seconds &time);

/// Returns the runs for display. Neighbours that look the same, such as those
/// of two stages, are merged.
std::vector<RunFact> runsShown(const PlanFacts &facts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PLAN_ROWS_H

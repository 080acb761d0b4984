//===- sweep.h - The best plan for each value of some flags -----*- C++ -*-===//
//
// A sweep searches once for each combination of values of the swept flags. Each
// search chooses the values of the other flags.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_SWEEP_H
#define MTPLAN_TOOLS_REPORT_SWEEP_H

#include <optional>
#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

struct SweepRow {
  /// Holds a value per swept flag. For an illegal mesh, the values of flags
  /// that are not degrees of the mesh are empty.
  std::vector<std::string> values;
  std::optional<planner::PlannedCandidate> plan;
  std::string reason;
};

struct Sweep {
  std::vector<std::string> names; ///< of flags, without "--"
  std::vector<SweepRow> rows;
};

/// Returns the names of the flags that can be swept: "tp", "micro-batch".
std::vector<std::string> sweepableNames();

/// Searches once per legal combination of the values of `names`. Uses only the
/// outcome's problem. Illegal meshes also become rows.
Sweep sweepOf(PlanOutcome &outcome, const std::vector<std::string> &names);

/// Writes a row per combination: the swept values, the step time in seconds,
/// the memory in bytes, the plan, and the reason for a missing plan.
std::string csvOf(const Sweep &sweep);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_SWEEP_H

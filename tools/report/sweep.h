//===- sweep.h - The best plan for each value of some flags -----*- C++ -*-===//
//
// A sweep fixes some choices to each combination of values that the search may
// give them, and searches the rest of the space for each combination.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_SWEEP_H
#define MTPLAN_TOOLS_REPORT_SWEEP_H

#include <optional>
#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Describes one combination of values.
struct SweepRow {
  /// The value of each swept flag; empty if the combination is illegal for any
  /// value of the flag.
  std::vector<std::string> values;
  std::optional<planner::PlannedCandidate> plan;
  std::string reason; ///< why there is no plan
};

struct Sweep {
  std::vector<std::string> names; ///< of flags, without "--"
  std::vector<SweepRow> rows;
};

/// Returns the names of the flags that can be swept: "tp", "micro-batch".
std::vector<std::string> sweepableNames();

/// Searches once per legal combination of the values of `names`; other choices
/// are open as in the outcome's search. Illegal meshes are rows, too.
///
/// \param outcome  the outcome of a search; only its problem is used
Sweep sweepOf(PlanOutcome &outcome, const std::vector<std::string> &names);

/// Writes a row per combination: the swept values, the step time in seconds,
/// the memory in bytes, the plan, and the reason if there is none.
std::string csvOf(const Sweep &sweep);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_SWEEP_H

//===- search_result.h - The plans that a search found ----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEARCH_RESULT_H
#define MTPLAN_PLANNER_SEARCH_SEARCH_RESULT_H

#include <optional>
#include <vector>

#include "planner/search/price/ledger.h"
#include "planner/search/price/memory_use.h"
#include "planner/search/segment/segment_plan.h"
#include "planner/search/space/rejection.h"

namespace mtplan::planner {

/// A configuration with its strategies.
struct PlannedCandidate {
  Parallelism config;
  /// The runs of each virtual stage, in model order.
  std::vector<std::vector<SegmentPlan>> parts;
  StepTime time;    ///< of the simulated step
  MemoryUse memory; ///< of the stage that needs most
  int fullestStage = 0;
  bool fits = false;
  Seconds lowerBound; ///< no plan of this configuration is faster
  bool optimal = false;
  /// Whether every stage's strategies have the least sum of times.
  bool isLeastSum = false;

  /// Returns all runs in chain order.
  std::vector<SegmentPlan> plans() const;
};

struct SearchResult {
  std::vector<PlannedCandidate> plans; ///< plans that fit, fastest first
  /// Meshes that are not legal, and configurations that are not among the
  /// plans, one entry each.
  std::vector<Rejection> rejections;
  /// Set if there is no plan: the fastest plan that fits although it is slower
  /// than asked for, or else the one that needs least memory.
  std::optional<PlannedCandidate> nearest;
  /// The number of legal configurations, also of those that others stand for:
  /// pruned + solved + refused + unreached.
  std::int64_t candidates = 0;
  /// Configurations whose bound of time or memory rules them out, or whose plan
  /// is slower than asked for.
  std::int64_t pruned = 0;
  std::int64_t solved = 0; ///< with a plan that fits, listed or not
  std::int64_t refused =
      0; ///< nothing is legal, or what was solved does not fit
  std::int64_t unreached = 0; ///< left when the search was stopped
  bool optimal = false; ///< whether the first plan is the optimum of the space
  Seconds lowerBound;   ///< no plan of the space is faster; the gap is known
};

/// Sets every count but `candidates` from the rejections.
void countCandidates(SearchResult &result, std::int64_t solved);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEARCH_RESULT_H

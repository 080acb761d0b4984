//===- candidate.h - What the search knows of a candidate -------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_CANDIDATE_H
#define MTPLAN_PLANNER_SEARCH_CANDIDATE_H

#include <optional>

#include "planner/search/cuts.h"

namespace mtplan::planner {

/// One way to share the devices out that is not solved yet.
struct Candidate {
  Parallelism how;
  Seconds bound; ///< no plan is faster
  /// What the bound stands on, each dearer and tighter than the one before:
  /// operators alone; the best plan of a micro-batch, first without what is
  /// computed again; the least times of all segments; the step simulated with
  /// those.
  enum class Known : std::uint8_t {
    work,
    computedOnce,
    microBatch,
    floors,
    step
  } known{};
  std::optional<StepProblem> floors; ///< to simulate
  /// Stands for those like it that are cut unevenly: they come one by one.
  std::optional<OrderedCuts> cuts;
  bool isCut() const { return cuts && known == Known::microBatch; }
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_CANDIDATE_H

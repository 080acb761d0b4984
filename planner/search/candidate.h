//===- candidate.h - A configuration that is not solved yet -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_CANDIDATE_H
#define MTPLAN_PLANNER_SEARCH_CANDIDATE_H

#include <optional>

#include "planner/search/bound/ordered_cuts.h"

namespace mtplan::planner {

/// A configuration that branch and bound has not solved yet.
struct Candidate {
  Parallelism config;
  Seconds bound; ///< a lower bound: no plan of it is faster
  /// The source of `bound`. Each level is dearer and tighter than the one
  /// before: the operators' work; the best plan of one micro-batch, at first
  /// without recomputation; the least times of every segment; the simulated
  /// step of those times.
  enum class BoundLevel : std::uint8_t {
    work,
    computedOnce,
    microBatch,
    relaxed,
    step
  } level{};
  /// The relaxed step, until it is simulated.
  std::optional<StepProblem> relaxed;
  /// The uneven cuts that this candidate stands for. They become candidates of
  /// their own one by one.
  std::optional<OrderedCuts> cuts;
  bool isCut() const { return cuts && level == BoundLevel::microBatch; }
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_CANDIDATE_H

//===- search.h - Branch and bound over configurations ----------*- C++ -*-===//
//
// Finds the fastest plan that fits. A configuration fixes the degrees of data,
// tensor, pipeline, context and expert parallelism, the micro-batch, the
// schedule, the layers per stage, ZeRO, recomputation, offload and the tiles of
// ZeRO-3 weights. The search enumerates the configurations that the options
// leave open (space/), computes a lower bound of each (bound/), finds the
// optimal strategies of the most promising configurations (segment/, stage/),
// prices and simulates their steps (price/), and prunes every configuration
// whose bound exceeds the incumbent's step. The bounds are admissible, so the
// result is the optimum of the whole space, or SearchResult::lowerBound limits
// the gap.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEARCH_H
#define MTPLAN_PLANNER_SEARCH_SEARCH_H

#include <optional>
#include <vector>

#include "planner/search/simplest.h"

namespace mtplan::planner {

struct SearchResult : RejectionCounts {
  /// Lists the plans that fit, fastest first, except that the first plan is the
  /// simplest within SearchOptions::tolerance of the fastest.
  std::vector<PlannedCandidate> plans;
  /// Describes the fastest plan, if the first of `plans` is slower.
  std::optional<FasterPlan> faster;
  /// Lists meshes that are not legal, and configurations that are not among the
  /// plans. An entry may stand for several configurations (Rejection::count).
  std::vector<Rejection> rejections;
  /// Is set if `plans` is empty and a rejected plan was found. This is the
  /// fastest plan that fits but is slower than SearchOptions::atMost or, if no
  /// plan fits, the plan that needs least memory.
  std::optional<PlannedCandidate> nearest;
  /// Counts the legal configurations, including those that share a rejection
  /// (Rejection::count): pruned + solved + refused + unreached.
  std::int64_t candidates = 0;
  /// Counts the configurations with a plan that fits and is not slower than
  /// SearchOptions::atMost, including plans that `plans` leaves out.
  std::int64_t solved = 0;
  bool optimal = false; ///< whether the fastest plan is the space's optimum
  Seconds lowerBound;   ///< of every plan that fits

  Seconds fastestStep() const { // there must be a plan
    return faster ? faster->step : plans.front().time.step;
  }
  /// Returns the largest share by which the fastest plan may exceed the
  /// optimum.
  double gap() const {
    return optimal ? 0.0 : fastestStep() / lowerBound - 1.0;
  }
};

/// \param model  the model, built for any number of samples; the search scales
/// it to each micro-batch
SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEARCH_H

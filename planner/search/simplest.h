//===- simplest.h - The simplest of almost equal plans ----------*- C++ -*-===//
//
// The fastest plan often differs from layer to layer only to fill the memory,
// or splits tensors in unusual ways for a small gain. This file measures how
// simple a plan is and derives simpler plans from it, so that the search can
// prefer the simplest plan within a tolerance of the fastest.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SIMPLEST_H
#define MTPLAN_PLANNER_SEARCH_SIMPLEST_H

#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// Measures how simple a plan is. Members are in order of importance; a smaller
/// value is simpler.
struct Simplicity {
  /// Counts the different layers: layers of one segment are equal if their
  /// strategies, layouts and parameter states are.
  int kinds = 0;
  /// Counts the twentieths of the device's memory by which the free memory
  /// falls short of a fifth: 0 to 4. More free memory than a fifth has no
  /// further use.
  int fullness = 0;
  /// Counts the choices in one layer of each kind, and in the segments that do
  /// not repeat, that Megatron-LM does not have: operators whose samples tp
  /// splits, products that tp does not split by a dimension of the weight, and
  /// all_to_all over tp.
  int unusual = 0;
  /// Counts the mesh axes with several ranks and other techniques: virtual
  /// stages, zero-bubble, ZeRO, recomputation, offload and tiles.
  int techniques = 0;

  bool operator<(const Simplicity &other) const {
    return std::tie(kinds, fullness, unusual, techniques) <
           std::tie(other.kinds, other.fullness, other.unusual,
                    other.techniques);
  }
};

/// Returns `Simplicity::kinds` of a plan. The time is quadratic in the number
/// of runs and linear in their operators.
int kindsOfLayers(const ModelGraph &graph, const PlannedParts &parts);

/// Returns how simple a plan is. It takes as long as `kindsOfLayers`.
Simplicity simplicityOf(const ModelGraph &graph, const PlannedCandidate &plan);

/// Describes the fastest plan that was found, in whose place a simpler one was
/// chosen.
struct FasterPlan {
  Seconds step;
  Simplicity simplicity; ///< of the fastest plan
  Simplicity chosen;     ///< of the simpler plan
};

/// Moves the simplest plan, whose step is at most `options.tolerance` longer
/// than the fastest plan's, to the front of `plans`. Besides the plans, these
/// variants of each plan are considered: all layers of a segment are equal to
/// one of the plan's layers. A variant replaces the plan of its configuration.
/// Among equally simple plans, the fastest is chosen.
/// \param plans  fastest first
/// \param model  for any number of samples
/// \returns the fastest plan, if it is not the first of `plans` any more
std::optional<FasterPlan> preferSimplest(std::vector<PlannedCandidate> &plans,
                                         const ModelGraph &model,
                                         const Machine &machine,
                                         const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SIMPLEST_H

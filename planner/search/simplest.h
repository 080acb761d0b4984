//===- simplest.h - The simplest of almost equal plans ----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SIMPLEST_H
#define MTPLAN_PLANNER_SEARCH_SIMPLEST_H

#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/solve_candidate.h"

namespace mtplan::planner {

/// Measures how simple a plan is. The fastest plan often treats layers
/// differently only in order to fill the memory, or splits tensors in unusual
/// ways for a small gain. Members are in order of importance; a smaller value
/// is simpler.
struct Simplicity {
  /// Counts the kinds of layers. Layers of one segment are of one kind if they
  /// have equal strategies, layouts and parameter states.
  int kinds = 0;
  /// Measures how full the device's memory is. The value is 0 if at least 4/20
  /// of the memory are free, and each twentieth that is missing adds 1.
  int fullness = 0;
  /// Counts choices that Megatron-LM does not have, in one layer of each kind
  /// and in the segments that are not layers. There are three such choices: tp
  /// splits the samples of an operator, tp splits no dimension of a weight in
  /// the weight's product, and all_to_all runs over tp.
  int unusual = 0;
  /// Counts the techniques that the plan uses: dp, tp, a second tensor axis,
  /// pp, cp, ep, virtual stages, zero-bubble, ZeRO, recomputation, offload and
  /// tiles.
  int techniques = 0;

  bool operator<(const Simplicity &other) const {
    return std::tie(kinds, fullness, unusual, techniques) <
           std::tie(other.kinds, other.fullness, other.unusual,
                    other.techniques);
  }
};

/// Returns `Simplicity::kinds` of a plan. The time is quadratic in the number
/// of runs of equal layers (SegmentPlan), and linear in the number of operators
/// of a layer.
int kindsOfLayers(const ModelGraph &graph, const PlannedParts &parts);

/// Returns how simple a plan is. The time is that of kindsOfLayers().
Simplicity simplicityOf(const ModelGraph &graph, const PlannedCandidate &plan);

/// Describes the fastest plan, if a simpler one was chosen in its place.
struct FasterPlan {
  Seconds step;
  Simplicity simplicity; ///< of the fastest plan
  Simplicity chosen;     ///< of the simpler plan
};

/// Moves the simplest plan within `options.tolerance` of the fastest to the
/// front of `plans`. Among equally simple plans, the fastest is moved. Variants
/// of each plan compete too: in a variant, all layers of a segment are equal to
/// one of the plan's layers. A variant replaces the plan of its configuration.
/// \param plans  fastest first
/// \param model  the model, built for any number of samples
/// \returns the fastest plan, if it is not the first of `plans` any more
std::optional<FasterPlan> preferSimplest(std::vector<PlannedCandidate> &plans,
                                         const ModelGraph &model,
                                         const Machine &machine,
                                         const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SIMPLEST_H

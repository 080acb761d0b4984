//===- candidate_bounds.h - All bounds of one configuration -----*- C++ -*-===//
//
// Collects the lower bounds of a configuration, for each layout that values
// between pipeline stages may have.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_CANDIDATE_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_CANDIDATE_BOUNDS_H

#include <optional>
#include <vector>

#include "planner/search/bound/bounds.h"
#include "planner/search/bound/relaxation.h"

namespace mtplan::planner {

/// A layout of all values between segments (Setting::boundary), and lower
/// bounds of every plan with this layout.
struct BoundaryBound {
  std::optional<int> boundary;
  /// A bound of the step without simulation; +infinity: no plan is legal.
  Seconds step;
  std::vector<StageBound> stages; ///< by stage; empty: no bounds
  LeastStep least;                ///< no stages: not known
};

/// The bounds of a configuration before it is solved.
struct CandidateBounds {
  std::vector<BoundaryBound> boundaries; ///< the layouts to try
  Bytes memory; ///< no plan of the configuration needs less on its device
};

/// Returns the layouts to try for the values between segments; without a
/// pipeline, only nullopt, which leaves the layout of each value free.
std::vector<std::optional<int>> boundariesOf(const ModelGraph &graph,
                                             const Parallelism &config);

/// Returns the bounds of a configuration that the relaxation has prepared with
/// each layout between stages.
/// \param model       for any number of samples
/// \param lowerBound  a known bound of the step
CandidateBounds candidateBounds(const ModelGraph &model,
                                const Parallelism &config, Seconds lowerBound,
                                Bounds &bounds, Relaxation &relaxation);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_CANDIDATE_BOUNDS_H

//===- candidate_bounds.h - All bounds of one configuration -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_CANDIDATE_BOUNDS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_CANDIDATE_BOUNDS_H

#include <optional>
#include <vector>

#include "planner/search/bound/bounds.h"
#include "planner/search/bound/relaxation.h"

namespace mtplan::planner {

/// Holds a layout of all values between segments (Setting::boundary), and lower
/// bounds of every plan with this layout.
struct BoundaryBound {
  Boundary boundary;
  /// Holds a bound of the step without simulation; +infinity: none is legal.
  Seconds step;
  std::vector<StageBound> stages; ///< by stage; empty: no bounds
  LeastStep least;                ///< not known if least.compute is empty
  std::vector<PhaseTimes> times;  ///< Relaxation::StepBound::times
};

struct CandidateBounds {
  std::vector<BoundaryBound> boundaries; ///< the layouts to try
  Bytes memory; ///< no plan of the configuration needs less on its device
};

/// Returns the layouts to try for the values between segments; without a
/// pipeline, only nullopt, which leaves the layout of each value free.
std::vector<Boundary> boundariesOf(const ModelGraph &graph,
                                   const Parallelism &config);

/// Returns the bounds of a configuration that the relaxation has prepared with
/// each layout between stages.
/// \param model  for any number of samples
CandidateBounds candidateBounds(const ModelGraph &model,
                                const Parallelism &config, Seconds lowerBound,
                                Bounds &bounds, Relaxation &relaxation);

/// Raises the bound by the best plan of one micro-batch of `once`, which must
/// be prepared: the candidate's configuration, with or without its
/// recomputation. Recomputation that `once` lacks counts by its compute alone.
/// The bound is +infinity if no plan is legal.
void boundByMicroBatch(Candidate &candidate, const Parallelism &once,
                       Bounds &bounds, const Relaxation &relaxation);

/// Raises the bound of a prepared configuration to the quick bound of
/// Relaxation::stepOf() if that is larger, and sets Candidate::relaxed.
void boundByRelaxation(Candidate &candidate, Relaxation &relaxation);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_CANDIDATE_BOUNDS_H

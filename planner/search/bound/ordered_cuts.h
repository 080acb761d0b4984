//===- ordered_cuts.h - Cuts of a pipeline, by lower bound ------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_ORDERED_CUTS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_ORDERED_CUTS_H

#include <vector>

#include "planner/search/bound/relaxation.h"

namespace mtplan::planner {

/// The uneven cuts of one pipeline, by ascending lower bound.
struct OrderedCuts {
  std::vector<std::vector<int>> layers;
  std::vector<Seconds> bounds; ///< no plan with the cut is faster
  std::size_t next = 0;        ///< the first cut that is not expanded
};

/// Returns a lower bound of the step with the configuration's cut.
Seconds cutBound(const Parallelism &config,
                 const Relaxation::LayerTimes &times);

/// Orders all uneven cuts.
/// \param times  of any cut; config.layers does not matter
OrderedCuts orderedCuts(const Parallelism &config,
                        const Relaxation::LayerTimes &times);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_ORDERED_CUTS_H

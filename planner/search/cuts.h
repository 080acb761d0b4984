//===- cuts.h - Where a pipeline may be cut ---------------------*- C++ -*-===//
//
// Ends of a pipeline hold embedding and head besides, and hold micro-batches
// for a longer and a shorter time than its middle. So they may be better off
// with fewer layers; what is between them is dealt out evenly.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_CUTS_H
#define MTPLAN_PLANNER_SEARCH_CUTS_H

#include <vector>

#include "planner/search/floors.h"

namespace mtplan::planner {

/// All ways to deal `layers` out to `stages` in which neither end holds more
/// than a middle stage (with two stages: all ways), but for the even one.
std::vector<std::vector<int>> unevenCuts(int layers, int stages);

/// Cuts of one pipeline, those first of which some plan may be fast.
struct OrderedCuts {
  std::vector<std::vector<int>> layers;
  std::vector<Seconds> bounds; ///< no plan with these is faster
  std::size_t next = 0;        ///< those before have been looked at
};

/// No plan of the candidate, cut as it says, is faster.
Seconds cutBound(const Parallelism &how, const Floors::LayerTimes &times);

/// \param times  of any cut; what `how` says of layers does not matter
OrderedCuts orderedCuts(const Parallelism &how,
                        const Floors::LayerTimes &times);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_CUTS_H

//===- cuts.h - Where a pipeline may be cut ---------------------*- C++ -*-===//
//
// The ends of a pipeline also hold the embedding and the head, and have other
// numbers of micro-batches in flight than its middle. They may be better off
// with fewer layers; the middle stages share the rest evenly.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_CUTS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_CUTS_H

#include <vector>

namespace mtplan::planner {

/// Returns all cuts of `layers` layers into `stages` stages in which neither
/// end holds more than a middle stage (with two stages: all cuts), without the
/// even one.
std::vector<std::vector<int>> unevenCuts(int layers, int stages);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_CUTS_H

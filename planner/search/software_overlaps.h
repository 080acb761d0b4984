//===- software_overlaps.h - What software runs beside compute --*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SOFTWARE_OVERLAPS_H
#define MTPLAN_PLANNER_SEARCH_SOFTWARE_OVERLAPS_H

#include "planner/machine/software.h"
#include "planner/simulate/step.h"

namespace mtplan::planner {

/// For the simulator. Offloaded state overlaps as `rest` says.
inline Overlaps overlapsOf(const Software &software, Overlaps rest) {
  rest.pointToPoint = software.overlap.pointToPoint;
  rest.gather = software.overlap.gather;
  rest.reduce = software.overlap.reduce;
  return rest;
}

/// Share of an overlapped collective's time that compute loses. Where a group
/// has one rank per node, few channels are open and take few units.
inline double taxOf(const Software &software, int ranksPerNode) {
  return ranksPerNode > 1 ? software.overlap.tax
                          : software.overlap.taxOneRankPerNode;
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SOFTWARE_OVERLAPS_H

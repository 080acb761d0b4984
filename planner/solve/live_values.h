//===- live_values.h - The values that infinities leave ---------*- C++ -*-===//
//
// Generalised arc consistency: a value stays while every table over its
// variable has a finite entry for it among the values that stay. Removing the
// others loses no legal assignment, and shrinks every table they occur in.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_LIVE_VALUES_H
#define MTPLAN_PLANNER_SOLVE_LIVE_VALUES_H

#include <vector>

#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Per variable the values that stay, ascending.
using LiveValues = std::vector<std::vector<int>>;

/// Returns the live values. One empty list means that no assignment is legal;
/// the reverse does not hold.
LiveValues liveValues(const Problem &problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_LIVE_VALUES_H

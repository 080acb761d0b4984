//===- elimination_plan.h - Live values, order of elimination ---*- C++ -*-===//
//
// Live values are found by generalised arc consistency: a value is live if
// every table over its variable has a finite entry that combines the value with
// live values of the other variables. Removing all other values loses no legal
// assignment and makes the tables smaller.
//
// The order of elimination affects only the size of intermediate tables. The
// order depends only on domains and scopes, so problems that differ in their
// costs share an order.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_PLAN_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_PLAN_H

#include <vector>

#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Lists the live values of each variable, ascending.
using LiveValues = std::vector<std::vector<int>>;

/// Returns the live values. If a variable has no live value, no assignment is
/// legal; the converse does not hold.
LiveValues liveValues(const Problem &problem);

struct EliminationOrder {
  std::vector<int> order; ///< every variable that is not kept, once
  double work = 0.0;      ///< number of entries of all joined tables
};

/// Returns the order of least work among greedy orders: by the smallest joined
/// table, by the least fill and, if the first order is costly, by perturbations
/// of these scores from a fixed seed. Variables with two values and many
/// neighbours are also tried as the last ones. Ties are broken by index. `keep`
/// may repeat variables.
EliminationOrder planElimination(const std::vector<int> &domains,
                                 const std::vector<std::vector<int>> &scopes,
                                 const std::vector<int> &keep);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ELIMINATION_PLAN_H

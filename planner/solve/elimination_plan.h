//===- elimination_plan.h - Live values, order of elimination ---*- C++ -*-===//
//
// Both are found before an elimination is compiled, from a problem's domains
// and scopes and from its infinities.
//
// Live values are found by generalised arc consistency: a value stays while
// every table over its variable has a finite entry for it among the values that
// stay. Removing the others loses no legal assignment, and shrinks every table
// they occur in.
//
// The order decides the size of the tables between the eliminations and nothing
// else. It depends on domains and scopes alone, so problems that differ in
// their numbers share it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_PLAN_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_PLAN_H

#include <vector>

#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Per variable the values that stay, ascending.
using LiveValues = std::vector<std::vector<int>>;

/// Returns the live values. One empty list means that no assignment is legal;
/// the reverse does not hold.
LiveValues liveValues(const Problem &problem);

struct EliminationOrder {
  std::vector<int> order; ///< every variable that is not kept, once
  double work = 0.0;      ///< entries of all joined tables, the measure
  double largest = 0.0;   ///< entries of the largest joined table
  int width = 0; ///< variables of the widest table, without the eliminated one
};

/// Returns the order of least work: a greedy order by the smallest joined table
/// or by the least fill and, where that is costly, one of some perturbed
/// repetitions (own seeded generator). Ties are broken by index. Repeated
/// values in `keep` are allowed.
EliminationOrder planElimination(const std::vector<int> &domains,
                                 const std::vector<std::vector<int>> &scopes,
                                 const std::vector<int> &keep);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ELIMINATION_PLAN_H

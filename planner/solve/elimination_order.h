//===- elimination_order.h - The order of elimination -----------*- C++ -*-===//
//
// The order decides the size of the tables between the eliminations and nothing
// else. It depends on domains and scopes alone, so problems that differ in
// their numbers share it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_ORDER_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_ORDER_H

#include <vector>

namespace mtplan::planner {

struct EliminationOrder {
  std::vector<int> order; ///< every variable that is not kept, once
  double work = 0.0;      ///< entries of all joined tables, the measure
  double largest = 0.0;   ///< entries of the largest joined table
  int width = 0;          ///< variables of the widest table, eliminated aside
};

/// Returns the order of least work: a greedy order by the smallest joined table
/// or by the least fill and, where that is costly, one of some perturbed
/// repetitions (own seeded generator). Ties are broken by index. Repeated
/// values in `keep` are allowed.
EliminationOrder planElimination(const std::vector<int> &domains,
                                 const std::vector<std::vector<int>> &scopes,
                                 const std::vector<int> &keep);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ELIMINATION_ORDER_H

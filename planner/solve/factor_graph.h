//===- factor_graph.h - The choice problem, as plain tables -----*- C++ -*-===//
//
// Variables with small finite domains and cost tables over a few of them each.
// Nothing here knows what a layout is. Two quantities add up side by side:
// time, which is minimised, and memory, which may be limited.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H
#define MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

#include <string>
#include <vector>

namespace mtplan::planner {

/// A table over `scope`, row-major, the last variable of the scope fastest.
struct CostTable {
  std::vector<int> scope;   ///< distinct variables, any order; empty: constant
  std::vector<double> time; ///< seconds; +infinity forbids the combination
  std::vector<double> memory; ///< bytes; empty means zero everywhere
};

struct Problem {
  std::vector<int> domains; ///< per variable, >= 1
  std::vector<CostTable> tables;
};

/// One value per variable.
using Assignment = std::vector<int>;

struct Cost {
  double time = 0.0; ///< +infinity: nothing is legal
  double memory = 0.0;
};

/// Returns the cost of one assignment, against which every solver's answer is
/// checked.
Cost costOf(const Problem &problem, const Assignment &assignment);

/// Returns every broken promise of the comments above; empty if sound.
std::vector<std::string> check(const Problem &problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

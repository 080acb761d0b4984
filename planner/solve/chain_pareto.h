//===- chain_pareto.h - Fastest path within a memory limit ------*- C++ -*-===//
//
// The shortest path of chain_path.h with sets of (time, memory) points on its
// edges: label-correcting over boundary states, where labels that are
// dominated, too far from the Lagrangian optimum, or beyond the memory limit
// even with the smallest remainder are dropped.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_PARETO_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_PARETO_H

#include <cstddef>
#include <vector>

#include "planner/solve/chain_path.h"
#include "planner/solve/factor_graph.h"
#include "planner/solve/pareto.h"

namespace mtplan::planner {

/// A chain with its shared values fixed.
struct ParetoChain {
  std::vector<Stage> stages;            ///< Lagrangian costs
  std::vector<const int *> entries;     ///< per stage: [in][out] -> entry
  std::vector<const ParetoSets *> sets; ///< per stage, by entry
  Distances fromStart, toEnd;           ///< of the Lagrangian costs
  /// Lower bounds of the remainder, each alone.
  Distances memoryToEnd, timeToEnd;
  double least = 0.0; ///< Lagrangian cost of the optimum
};

struct ParetoPath {
  struct Repeat {
    std::size_t in = 0, out = 0;        ///< boundary states
    const ParetoPoint *point = nullptr; ///< of the stage's sets
  };
  std::vector<Repeat> repeats; ///< empty: nothing found
  Cost cost;
};

/// The limits that a path must observe.
struct PathLimits {
  double gap = 0.0;    ///< on its Lagrangian cost, above the least
  double time = 0.0;   ///< may be exceeded by rounding alone
  double memory = 0.0; ///< never exceeded
};

/// Finds the fastest path within the limits. Returns false if the budget ran
/// out first.
bool fastestWithin(const ParetoChain &chain, const PathLimits &limits,
                   double indifference, PointBudget &budget, ParetoPath &found);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_PARETO_H

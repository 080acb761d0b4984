//===- chain_gap.h - Closing the gap of the Lagrangian bound ----*- C++ -*-===//
//
// With the Lagrangian optimum V at lambda, V - lambda * limit bounds every
// solution within the limit from below, and a solution within the limit that
// takes at most that bound plus g costs at most V + g. So all Pareto-optimal
// points up to V + g contain the optimum, if it lies below bound + g: g grows
// until one is found, and each g in vain raises the bound.
//
// The path is the shortest one of chain_tables.h with sets of (time, memory)
// points on its edges: label-correcting over boundary states, where labels that
// are dominated, too far from the Lagrangian optimum, or beyond the memory
// limit even with the smallest remainder are dropped.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_GAP_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_GAP_H

#include <cstddef>
#include <vector>

#include "planner/solve/chain_tables.h"
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

/// A solution within the limit, and a lower bound.
struct Incumbent {
  std::vector<Run> runs;
  Cost cost;
  double lowerBound = 0.0;
};

/// Closes the gap of one chain.
class ChainGap {
public:
  /// `tables` was just run at (1, lambda) with least cost `least`, which is
  /// finite; `timeCosts` are its costs at (1, 0), `memoryCosts` at (0, 1). All
  /// must outlive the object.
  ChainGap(const ChainProblem &chain, const ChainTables &tables,
           const std::vector<std::vector<double>> &timeCosts,
           const std::vector<std::vector<double>> &memoryCosts, double lambda,
           double least);

  /// Looks for the best path made of repeats that some of `solutions` use.
  /// Between two points of the hull, this closes most of the gap.
  void mix(const std::vector<std::vector<Run>> &solutions, PointBudget budget,
           Incumbent &incumbent);

  /// Returns true if no solution is faster than min(incumbent, stopAbove),
  /// which lowerBound then says. Returns false if the budget ran out;
  /// lowerBound is valid.
  bool close(double stopAbove, PointBudget &budget, Incumbent &incumbent);

private:
  std::vector<double> excessOf(int link) const;
  bool search(double gap, double latest, PointBudget &budget,
              const std::vector<const ParetoSets *> &sets, ParetoPath &best,
              std::size_t &combination);
  double tolerance(const Incumbent &incumbent) const;

  const ChainProblem &chain;
  const ChainTables &tables;
  double lambda, least, bound;
  double indifference; ///< the most that rounding may lose at one filter
  std::vector<ParetoChain> chains; ///< per combination of shared values
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_GAP_H

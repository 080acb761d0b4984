//===- chain_gap.h - Closing the gap of the Lagrangian bound ----*- C++ -*-===//
//
// Let V be the least Lagrangian cost, time + lambda * memory, of any solution.
// Every solution within the memory limit takes at least V - lambda * limit. A
// solution within the limit that exceeds this bound by at most g has a
// Lagrangian cost of at most V + g. The solver finds all Pareto-optimal points
// up to V + g, and increases g until the points include a solution within the
// limit. Each g without such a solution raises the bound.
//
// A solution is a shortest path over the boundary states of chain_tables.h,
// with sets of (time, memory) points on the edges. A label is a path from the
// start to a state. A label is pruned if it is dominated, if it is too far from
// the Lagrangian optimum, or if it needs too much memory even with the smallest
// rest of the path.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_GAP_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_GAP_H

#include <cstddef>
#include <vector>

#include "planner/solve/chain_tables.h"
#include "planner/solve/pareto.h"

namespace mtplan::planner {

/// Describes a chain with its shared values fixed.
struct ParetoChain {
  std::vector<Stage> stages;            ///< with Lagrangian costs
  std::vector<const int *> entries;     ///< per stage: entry or -1, [in][out]
  std::vector<const ParetoSets *> sets; ///< per stage: points of each entry
  Distances fromStart, toEnd;           ///< sums of Lagrangian costs
  /// These are lower bounds of memory and of time from a state to the end.
  Distances memoryToEnd, timeToEnd;
  double least = 0.0; ///< the least Lagrangian cost
};

struct ParetoPath {
  struct Repeat {
    std::size_t in = 0, out = 0;        ///< boundary states
    const ParetoPoint *point = nullptr; ///< a point of the stage's sets
  };
  std::vector<Repeat> repeats; ///< empty: no path found
  Cost cost;
};

/// Holds the best solution within the limit so far, and a lower bound of time.
struct Incumbent {
  std::vector<Run> runs;
  Cost cost;
  double lowerBound = 0.0;
};

class ChainGap {
public:
  /// The last run of `tables` must have had the objective (1, lambda) and the
  /// finite minimum `least`. `timeCosts` are the costs of the tables at the
  /// objective (1, 0), and `memoryCosts` are the costs at the objective (0, 1).
  /// All references must outlive the object.
  ChainGap(const ChainProblem &chain, const ChainTables &tables,
           const std::vector<std::vector<double>> &timeCosts,
           const std::vector<std::vector<double>> &memoryCosts, double lambda,
           double least);

  /// Improves the incumbent with the best path that combines repeats of
  /// `solutions`. This closes most of the gap between two vertices of the
  /// convex hull.
  void mix(const std::vector<std::vector<Run>> &solutions, PointBudget budget,
           Incumbent &incumbent);

  /// Improves the incumbent until no solution can be faster than the smaller of
  /// incumbent.cost.time and stopAbove, and raises incumbent.lowerBound to that
  /// time. Returns false if the budget runs out before; incumbent.lowerBound is
  /// valid even then.
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
  /// Limits the time lost per call of keepPareto() or FrontMerger::take().
  double indifference;
  std::vector<ParetoChain> chains; ///< per combination of shared values
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_GAP_H

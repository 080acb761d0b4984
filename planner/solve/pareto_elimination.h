//===- pareto_elimination.h - All good trade-offs of a link -----*- C++ -*-===//
//
// The elimination with sets of (time, memory) points instead of numbers. A
// plain elimination at the same lambda has been run before and says how cheap
// each entry's surroundings can be, so that only points within `gap` of the
// optimum are made.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_PARETO_ELIMINATION_H
#define MTPLAN_PLANNER_SOLVE_PARETO_ELIMINATION_H

#include <vector>

#include "planner/solve/elimination.h"
#include "planner/solve/pareto.h"

namespace mtplan::planner {

class ParetoElimination {
public:
  /// `elimination` was run on `problem` with the objective that excesses are
  /// measured by, and is not run again during this object's life.
  ParetoElimination(const Elimination &elimination, const Problem &problem);

  /// Propagates `excess`: per entry of the elimination's table, by how much the
  /// cheapest whole solution through it exceeds the optimum. Entries beyond
  /// `gap` are skipped for good.
  void descend(const std::vector<double> &excess, double gap);

  /// Finds all nondominated points of each entry that are within `gap` (at most
  /// that of descend) of the optimum. Returns false if the budget ran out.
  bool ascend(double gap, double indifference, PointBudget &budget);

  /// Returns the points per entry of the elimination's table. Call it after
  /// ascend.
  const ParetoSets &sets() const { return results.back(); }

  /// Returns the assignment of a point of `sets`.
  Assignment decode(const std::vector<int> &keptValues,
                    const ParetoPoint &point) const;

private:
  struct Node {
    int bucket = -1, value = 0; ///< bucket -1: just joins two others
    int left = -1, right = -1;
  };

  void locate(const Bucket &bucket, std::size_t entry);
  double joined(const Bucket &bucket, std::size_t value) const;
  std::size_t entryOf(const BucketInput &input, const Bucket &bucket,
                      std::size_t value) const;
  bool combine(const Bucket &bucket, std::size_t value, double slack,
               double indifference, PointBudget &budget);
  int keep(ParetoPoint &point);

  const Elimination &elimination;
  const EliminationProgram &program;
  std::vector<std::vector<double>> leafTime, leafMemory;
  std::vector<std::vector<double>> excessOf; ///< per bucket and entry
  std::vector<ParetoSets> results;           ///< per bucket
  std::vector<Node> nodes;
  std::vector<std::size_t> digits; ///< of the current entry
  std::vector<ParetoPoint> partial, extended;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_PARETO_ELIMINATION_H

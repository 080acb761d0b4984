//===- pareto.h - Trade-offs between time and memory ------------*- C++ -*-===//
//
// A point is the time, the memory and the excess of a partial solution. The
// excess is the Lagrangian cost (time + lambda * memory) of the point minus the
// least Lagrangian cost of any point of the same table entry. The excess of a
// combined point is the sum of its parts' excesses, plus the cost of the chosen
// value minus the cost of the cheapest value. A point is pruned if its excess
// plus the least excess of the rest of the solution exceeds the gap to the
// incumbent.
//
// A Pareto elimination is a bucket elimination whose entries are Pareto fronts.
// A plain elimination at the same lambda runs first and bounds the rest of the
// solution, so that only points within `gap` of the optimum are created.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_PARETO_H
#define MTPLAN_PLANNER_SOLVE_PARETO_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/solve/elimination.h"

namespace mtplan::planner {

struct ParetoPoint {
  double time = 0.0, memory = 0.0;
  double excess = 0.0;
  /// These index the two points or choices that this point combines; -1 means
  /// none. The code that creates the point defines the lists that are indexed.
  int left = -1, right = -1;
};

/// Removes dominated points and sorts the other points by memory. Among equal
/// points, the first stays. A point with more memory that is faster by at most
/// `indifference` counts as dominated.
void keepPareto(std::vector<ParetoPoint> &points, double indifference);

/// Merges Pareto fronts, which are sorted by ascending memory and descending
/// time, into one. Fronts are merged in pairs, like the digits of a binary
/// counter, so that n points in k fronts take O(n log k).
class FrontMerger {
public:
  /// Moves the points out of `front`. The first of equal points stays.
  void add(std::vector<ParetoPoint> &front);
  /// Moves all nondominated points to `points`, with the indifference of
  /// keepPareto. The merger is then empty.
  void take(double indifference, std::vector<ParetoPoint> &points);

private:
  void merge(const std::vector<ParetoPoint> &earlier,
             const std::vector<ParetoPoint> &later);

  /// The last level has the oldest points.
  std::vector<std::vector<ParetoPoint>> levels;
  std::vector<ParetoPoint> merged;
};

/// Holds the points of each entry of a table.
struct ParetoSets {
  std::vector<ParetoPoint> points;
  /// Holds the index of each entry's first point, and then the number of
  /// points.
  std::vector<std::size_t> begin;

  const ParetoPoint *first(std::size_t entry) const {
    return points.data() + begin[entry];
  }
  const ParetoPoint *last(std::size_t entry) const {
    return points.data() + begin[entry + 1];
  }
  void clear();
  void append(const std::vector<ParetoPoint> &entry);
  /// Appends the next entry's points and sorts them by excess.
  void appendByExcess(const std::vector<ParetoPoint> &entry);
};

/// Limits the work. The unit is created points, not seconds, so that results
/// are deterministic.
struct PointBudget {
  std::int64_t left = 0;
  bool spend(std::int64_t points) {
    left -= points;
    return left >= 0;
  }
};

class ParetoElimination {
public:
  /// `elimination` must have run on `problem` with the objective of the
  /// excesses, and must not run again while this object exists.
  ParetoElimination(const Elimination &elimination, const Problem &problem);

  /// Propagates excesses to all buckets. `excess` has, per entry of the
  /// elimination's table, the Lagrangian cost of the cheapest complete solution
  /// that uses the entry, minus the optimum. Entries above `gap` are never
  /// used.
  void descend(const std::vector<double> &excess, double gap);

  /// Finds all nondominated points of each entry that are within `gap` of the
  /// optimum. `gap` must not exceed that of descend(). Returns false if the
  /// budget ran out.
  bool ascend(double gap, double indifference, PointBudget &budget);

  /// Returns the points per entry of the elimination's table (after ascend).
  const ParetoSets &sets() const { return results.back(); }

  /// Returns the assignment of a point of `sets`.
  Assignment decode(const std::vector<int> &keptValues,
                    const ParetoPoint &point) const;

private:
  /// Represents the choices of the nodes `left` and `right` plus the choice of
  /// a value for a bucket's variable.
  struct Node {
    int bucket = -1, value = 0; ///< indices; bucket -1: no choice of its own
    int left = -1, right = -1;  ///< indices into `nodes`; -1: no node
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
  std::vector<std::size_t> digits; ///< the scope's values at the current entry
  std::vector<ParetoPoint> partial, extended;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_PARETO_H

//===- pareto.h - Trade-offs between time and memory ------------*- C++ -*-===//
//
// A point is a partial solution: what it costs, and by how much its Lagrangian
// cost (time + lambda * memory) exceeds the least of all partial solutions it
// competes with. Excesses add up, so a point whose excess, with that of its
// surroundings, passes the gap to the incumbent cannot be part of a better
// solution.
//
// The Pareto elimination has sets of points instead of numbers. A plain
// elimination at the same lambda has been run before and says how cheap each
// entry's surroundings can be, so that only points within `gap` of the optimum
// are made.
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
  /// Indices of the points it combines; its maker knows.
  int left = -1, right = -1;
};

/// Removes points that another one matches or beats in both respects (of equals
/// the first stays); a gain in time of at most `indifference` does not count.
/// Leaves them in order of memory.
void keepPareto(std::vector<ParetoPoint> &points, double indifference);

/// Applies keepPareto to points that come as fronts: runs in order of memory,
/// each point faster than the one before. It merges them like the digits of a
/// counter, so that n points in k fronts take O(n log k), less what each merge
/// drops.
class FrontMerger {
public:
  /// Takes the front's points and leaves it empty. The first of equal points
  /// stays.
  void add(std::vector<ParetoPoint> &front);
  /// Returns all nondominated points, with the indifference of keepPareto; the
  /// merger is empty afterwards.
  void take(double indifference, std::vector<ParetoPoint> &points);

private:
  void merge(const std::vector<ParetoPoint> &earlier,
             const std::vector<ParetoPoint> &later);

  std::vector<std::vector<ParetoPoint>> levels; ///< the earliest come last
  std::vector<ParetoPoint> merged;
};

/// Points per entry of some table.
struct ParetoSets {
  std::vector<ParetoPoint> points;
  std::vector<std::size_t> begin; ///< per entry, and one past the last

  const ParetoPoint *first(std::size_t entry) const {
    return points.data() + begin[entry];
  }
  const ParetoPoint *last(std::size_t entry) const {
    return points.data() + begin[entry + 1];
  }
  void clear();
  /// Appends the next entry's points unchanged.
  void append(const std::vector<ParetoPoint> &entry);
  /// Appends the next entry's points and sorts them by excess.
  void appendByExcess(const std::vector<ParetoPoint> &entry);
};

/// The work allowed, counted in points made, so that the place where it ends is
/// a function of the input.
struct PointBudget {
  std::int64_t left = 0;
  bool spend(std::int64_t points) {
    left -= points;
    return left >= 0;
  }
};

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

#endif // MTPLAN_PLANNER_SOLVE_PARETO_H

//===- pareto.h - Trade-offs between time and memory ------------*- C++ -*-===//
//
// A point is a partial solution: what it costs, and by how much its Lagrangian
// cost (time + lambda * memory) exceeds the least of all partial solutions it
// competes with. Excesses add up, so a point whose excess, with that of its
// surroundings, passes the gap to the incumbent cannot be part of a better
// solution.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_PARETO_H
#define MTPLAN_PLANNER_SOLVE_PARETO_H

#include <cstddef>
#include <cstdint>
#include <vector>

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
  /// Takes the front's points and leaves it empty. Of equals those of the front
  /// added first stay.
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

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_PARETO_H

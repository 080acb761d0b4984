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
  int left = -1, right = -1; ///< what it was made of; its maker knows
};

/// Removes points that another is at least as good as in both respects (of
/// equals the first stays); a gain in time of at most `indifference` does not
/// count. Leaves them in order of memory.
void keepPareto(std::vector<ParetoPoint> &points, double indifference);

/// Points per entry of some table, each entry's by increasing excess.
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
  /// Appends the next entry's points and sorts them by excess.
  void append(const std::vector<ParetoPoint> &entry);
};

/// Work allowed, counted in points made, so that where it ends is a function
/// of the input.
struct PointBudget {
  std::int64_t left = 0;
  bool spend(std::int64_t points) {
    left -= points;
    return left >= 0;
  }
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_PARETO_H

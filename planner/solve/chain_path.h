//===- chain_path.h - Shortest path over boundary states --------*- C++ -*-===//
//
// One stage per repeat of each link, one node per state of the boundary between
// two repeats. Repeats of one link point to the same matrix.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_PATH_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_PATH_H

#include <cstddef>
#include <vector>

namespace mtplan::planner {

struct Stage {
  int link = 0;
  const double *cost = nullptr; ///< [in state][out state]
  std::size_t in = 1, out = 1;  ///< numbers of states
};

/// The least cost of reaching each state, per boundary (stages + 1 of them).
using Distances = std::vector<std::vector<double>>;

void distancesFromStart(const std::vector<Stage> &stages, Distances &result);
void distancesToEnd(const std::vector<Stage> &stages, Distances &result);

/// Returns the states of a shortest path, one per boundary; empty if all are
/// infinite. Among equals (to rounding) it stays in one state where it can, and
/// takes the lowest state otherwise.
std::vector<std::size_t> shortestPath(const std::vector<Stage> &stages,
                                      const Distances &fromStart);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_PATH_H

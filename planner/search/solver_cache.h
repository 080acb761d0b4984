//===- solver_cache.h - One solver per shape of problem ---------*- C++ -*-===//
//
// Candidates of one mesh differ in their numbers, seldom in their shape, and
// ordering an elimination costs as much as running it a few times.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SOLVER_CACHE_H
#define MTPLAN_PLANNER_SEARCH_SOLVER_CACHE_H

#include <algorithm>
#include <memory>
#include <vector>

#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Not shared between threads. What a solver answers does not depend on what
/// it solved before, so a cache never changes a plan.
class SolverCache {
public:
  ChainSolver &solverOf(const ChainProblem &chain) {
    auto known = std::ranges::find_if(
        solvers, [&](const auto &solver) { return solver->hasShapeOf(chain); });
    if (known != solvers.end())
      return **known;
    solvers.push_back(std::make_unique<ChainSolver>(chain));
    return *solvers.back();
  }

private:
  std::vector<std::unique_ptr<ChainSolver>> solvers;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SOLVER_CACHE_H

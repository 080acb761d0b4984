//===- solver_cache.h - One solver per shape of problem ---------*- C++ -*-===//
//
// Configurations of one mesh differ in their numbers, seldom in their shape,
// and ordering an elimination costs as much as running it a few times.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_CACHE_H
#define MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_CACHE_H

#include <algorithm>
#include <memory>
#include <vector>

#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

/// Caches the most recently used solvers. It is not shared between threads. A
/// solver's answer does not depend on what it solved before, so the cache never
/// changes a plan.
class SolverCache {
public:
  ChainSolver &solverOf(const ChainProblem &chain) {
    auto known = std::ranges::find_if(
        solvers, [&](const auto &solver) { return solver->hasShapeOf(chain); });
    if (known == solvers.end()) {
      // Evicts the least recently used solver.
      if (solvers.size() == kMost)
        solvers.erase(solvers.begin());
      solvers.push_back(std::make_unique<ChainSolver>(chain));
    } else {
      std::rotate(known, known + 1, solvers.end());
    }
    return *solvers.back();
  }

private:
  static constexpr std::size_t kMost = 48;
  std::vector<std::unique_ptr<ChainSolver>> solvers;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_STAGE_SOLVER_CACHE_H

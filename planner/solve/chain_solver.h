//===- chain_solver.h - Many chains of one shape ----------------*- C++ -*-===//
//
// Solves chain problems exactly. Without a memory limit, the solver eliminates
// each link's inner variables and finds the shortest path over the boundaries.
// With a limit:
//
//   1. the fastest solution, if it fits, is optimal;
//   2. the smallest solution, if it does not fit, proves that none does;
//   3. cutting planes between a solution that is too large and one that fits
//      maximise the Lagrangian dual; each cut is an exact solve, and every dual
//      value bounds the optimum from below;
//   4. the solutions so far are mixed, with different choices per repeat;
//   5. the gap that is left is closed with Pareto sets (chain_gap.h), within a
//      budget counted in points.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "planner/solve/chain_tables.h"

namespace mtplan::planner {

struct SolveLimits {
  /// Holds the cutoff in seconds. The solver gives up
  /// (ChainSolution::abandoned) once every solution is proved to take longer.
  double stopAbove = kInfinity;
  /// Limits the points that are created to close the gap, at about 50 ns per
  /// point. With 0 points the gap stays open, and the result is the best
  /// solution and the bound of steps 1 to 3.
  std::int64_t points = 4'000'000;
};

/// Holds the minimum of an objective over all solutions, without a memory
/// limit.
struct LeastCost {
  double total = 0.0; ///< cost of all repeats; +infinity: none is legal
  /// Holds, per link, the minimum of a single repeat without neighbours.
  std::vector<double> byLink;
};

/// Solves chains of one shape, which use the same elimination orders and
/// buffers. Solutions do not depend on earlier calls.
class ChainSolver {
public:
  /// \throws std::invalid_argument with the first error of check()
  explicit ChainSolver(const ChainProblem &shape);

  /// Returns whether `chain` has the solver's shape: only costs, repeats and
  /// the memory limit may differ.
  bool hasShapeOf(const ChainProblem &chain) const;

  /// Returns the optimum of `chain`. The costs are not checked.
  /// \throws std::invalid_argument if `chain` has another shape
  ChainSolution solve(const ChainProblem &chain, SolveLimits limits = {});

  /// Returns the minimum of each objective. Throws as solve() does.
  std::vector<LeastCost> least(const ChainProblem &chain,
                               const std::vector<Objective> &objectives);

private:
  void limitMemory(const ChainProblem &chain, const SolveLimits &limits,
                   ChainSolution &solution);

  ChainProblem shape; ///< without costs
  ChainTables tables;
};

/// Caches the most recently used solvers, because problems of one mesh seldom
/// differ in shape, and ordering an elimination takes as long as a few runs.
/// Threads must not share a cache.
class SolverCache {
public:
  /// Returns a solver of the chain's shape, valid until the next call.
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

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H

//===- chain_solver.h - Many chains of one shape ----------------*- C++ -*-===//
//
// Without a binding memory limit: eliminate each link's inside, shortest path
// over the boundaries. With one:
//
//   1. the fastest solution, if it fits, is optimal;
//   2. the smallest solution, if it does not fit, proves that none does;
//   3. cutting planes between a solution that is too large and one that fits
//      maximise the Lagrangian dual; each cut is an exact solve, and every dual
//      value bounds the optimum from below;
//   4. mixtures: repeats of a link take either side's choice;
//   5. the gap that is left is closed with Pareto sets (chain_gap.h), within a
//      budget counted in points.
//
// `optimal` claims that no solution within the limit is faster by more than
// 1e-9 of its time. Rounding is the only reason that this is not zero.
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
  /// The cutoff: once it is proved that no solution is this fast, the solver
  /// gives up (ChainSolution::abandoned).
  double stopAbove = std::numeric_limits<double>::infinity();
  /// The number of points that closing the gap may make; about 50 ns each. With
  /// 0 the gap stays open: the result is the best solution met while bounding,
  /// and the bound.
  std::int64_t points = 4'000'000;
};

/// The least of an objective over all solutions, without a memory limit.
struct LeastCost {
  double total = 0.0;         ///< of all repeats; +infinity: nothing is legal
  std::vector<double> byLink; ///< of one repeat, whatever its neighbours choose
};

/// Caches elimination orders, layouts and buffers for problems that differ in
/// their numbers alone. The solution does not depend on what was solved before.
class ChainSolver {
public:
  /// Throws std::invalid_argument with the first finding of check().
  explicit ChainSolver(const ChainProblem &shape);

  /// Returns whether `chain` differs from the solver's shape in its numbers
  /// alone.
  bool hasShapeOf(const ChainProblem &chain) const;

  /// Throws std::invalid_argument if `chain` has another shape. Its numbers are
  /// not checked.
  ChainSolution solve(const ChainProblem &chain, SolveLimits limits = {});

  /// Returns the least of each objective. Throws as solve() does.
  std::vector<LeastCost> least(const ChainProblem &chain,
                               const std::vector<Objective> &objectives);

private:
  void limitMemory(const ChainProblem &chain, const SolveLimits &limits,
                   ChainSolution &solution);

  ChainProblem shape; ///< without numbers
  ChainTables tables;
};

/// Returns the exact optimum: bucket elimination inside each link (keeping its
/// boundary), shortest path over boundaries, outer enumeration of shared
/// values. With a memory limit that binds: Lagrangian bound, then the gap is
/// closed exactly; `optimal` says whether it was closed within the budget. The
/// assignment found is a function of the input alone.
ChainSolution solveChain(const ChainProblem &chain);

/// Caches the most recently used solvers: problems of one mesh differ in their
/// numbers, seldom in their shape, and ordering an elimination costs as much as
/// running it a few times. It is not shared between threads. A solver's answer
/// does not depend on what it solved before, so the cache never changes a plan.
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

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H

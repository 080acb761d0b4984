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
//   4. mixtures: copies of repeated links take either side's choice;
//   5. the gap that is left is closed with Pareto sets (chain_gap.h), within a
//      budget counted in points.
//
// What `optimal` claims: no solution within the limit is faster by more than
// 1e-9 of its time. Rounding is the only reason that this is not zero.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H

#include <cstdint>
#include <limits>

#include "planner/solve/chain.h"
#include "planner/solve/chain_tables.h"

namespace mtplan::planner {

struct SolveLimits {
  /// Slower solutions are of no interest: once it is proved that none is at
  /// most this fast, the solver gives up (ChainSolution::abandoned).
  double stopAbove = std::numeric_limits<double>::infinity();
  /// Points that closing the gap may make; about 50 ns each. With none the
  /// gap is left: the best solution met while bounding, and the bound.
  std::int64_t points = 4'000'000;
};

/// What no solution has less of, memory unlimited.
struct LeastCost {
  double whole = 0.0;         ///< of all copies; +infinity: nothing is legal
  std::vector<double> byLink; ///< of one copy, whatever its neighbours choose
};

/// Keeps elimination orders, layouts and buffers between problems that differ
/// in their numbers only. The solution does not depend on what was solved
/// before.
class ChainSolver {
public:
  /// Throws std::invalid_argument with what check() finds first.
  explicit ChainSolver(const ChainProblem &shape);

  /// True if `chain` differs from the solver's shape in its numbers only.
  bool hasShapeOf(const ChainProblem &chain) const;

  /// Throws std::invalid_argument if `chain` has another shape. Its numbers are
  /// taken to be sound.
  ChainSolution solve(const ChainProblem &chain, SolveLimits limits = {});

  /// The least of each objective. Throws as solve() does.
  std::vector<LeastCost> least(const ChainProblem &chain,
                               const std::vector<Objective> &objectives);

private:
  void limitMemory(const ChainProblem &chain, const SolveLimits &limits,
                   ChainSolution &solution);

  ChainProblem shape; ///< without numbers
  ChainTables tables;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_SOLVER_H

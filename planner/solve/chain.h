//===- chain.h - A chain of repeated segments, solved exactly ---*- C++ -*-===//
//
// Each link of the chain is a Problem that occurs `repeat` times in sequence.
// Some of its variables are its boundary: the out variables of one repeat are
// the in variables of the next, in order (of the next repeat of the same link,
// then of the next link). Repeats may be solved differently; links with
// `repeat` > 1 come back as runs of equal repeats. Variables named in `shared`
// take one value over the whole chain (the layout of a tied parameter).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_CHAIN_H
#define MTPLAN_PLANNER_SOLVE_CHAIN_H

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

struct Link {
  Problem problem;
  int repeat = 1;
  std::vector<int> in, out; ///< boundary variables; domains match neighbours'
  /// (variable here, shared id).
  std::vector<std::pair<int, int>> shared;
};

struct ChainProblem {
  std::vector<Link> links;
  /// Limits the memory of all repeats together, in bytes.
  double memoryLimit = std::numeric_limits<double>::infinity();
};

/// `count` consecutive repeats of one link with the same assignment.
struct Run {
  int link = 0;
  int count = 1;
  Assignment assignment;
};

struct ChainSolution {
  bool feasible = false; ///< false: nothing legal fits; `cost` is then the
                         ///< least-memory solution's, `runs` too if any exists
  std::vector<Run> runs; ///< in chain order
  Cost cost;             ///< of all repeats together
  /// No solution within the limit is faster than this; +infinity if there is
  /// none. Equal to cost.time (to 1e-9 relative) when `optimal`.
  double lowerBound = 0.0;
  bool optimal = false;
  /// Whether the limit changed the result; if false, the fastest solution of
  /// all fits.
  bool limited = false;
  /// Whether the solver gave up because `lowerBound` exceeds the cutoff; there
  /// are then no runs.
  bool abandoned = false;
};

/// Returns every broken promise of the comments above, and of each link's
/// problem.
std::vector<std::string> check(const ChainProblem &chain);

/// Returns the cost of given runs; infinite if a boundary or shared value does
/// not match or the runs do not cover the chain.
Cost costOf(const ChainProblem &chain, const std::vector<Run> &runs);

/// Returns the exact optimum: bucket elimination inside each link (keeping its
/// boundary), shortest path over boundaries, outer enumeration of shared
/// values. With a memory limit that binds: Lagrangian bound, then the gap is
/// closed exactly (see chain_solver.h, which also reuses work between problems
/// of one shape); `optimal` says whether it was closed within the budget. Ties:
/// the assignment found is a function of the input alone.
ChainSolution solveChain(const ChainProblem &chain);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_CHAIN_H

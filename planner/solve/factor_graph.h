//===- factor_graph.h - Choice problems, as plain tables --------*- C++ -*-===//
//
// A choice problem has variables with small finite domains and cost tables over
// a few of them each. Nothing here knows what a layout is. Two quantities add
// up side by side: time, which is minimised, and memory, which may be limited.
//
// A chain is a sequence of links. Each link is a problem that occurs `repeat`
// times in sequence. Some of its variables are its boundary: the out variables
// of one repeat are the in variables of the next, in order (of the next repeat
// of the same link, then of the next link). Repeats may be solved differently;
// links with `repeat` > 1 come back as runs of equal repeats. Variables named
// in `shared` take one value over the whole chain (the layout of a tied
// parameter).
//
// The cost, the checks and the exhaustive solver are the specification of every
// other solver (chain_solver.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H
#define MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::planner {

/// A table over `scope`, row-major, the last variable of the scope fastest.
struct CostTable {
  std::vector<int> scope;   ///< distinct variables, any order; empty: constant
  std::vector<double> time; ///< seconds; +infinity forbids the combination
  std::vector<double> memory; ///< bytes; empty means zero everywhere
};

struct Problem {
  std::vector<int> domains; ///< per variable, >= 1
  std::vector<CostTable> tables;
};

/// One value per variable.
using Assignment = std::vector<int>;

struct Cost {
  double time = 0.0; ///< +infinity: nothing is legal
  double memory = 0.0;
};

/// Returns the cost of one assignment, against which every solver's answer is
/// checked.
Cost costOf(const Problem &problem, const Assignment &assignment);

/// Returns every broken promise of the comments above; empty if sound.
std::vector<std::string> check(const Problem &problem);

/// A problem that occurs `repeat` times in sequence.
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

/// Tries every assignment, in exponential time: the specification, for tests.
ChainSolution solveChainExhaustively(const ChainProblem &chain);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

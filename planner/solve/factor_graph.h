//===- factor_graph.h - Choice problems, as plain tables --------*- C++ -*-===//
//
// A choice problem has variables with small finite domains, and cost tables
// over a few variables each. Time and memory are sums over the tables; time is
// minimised, and memory can be limited.
//
// A chain is a sequence of links. Each link is a problem that occurs `repeat`
// times in sequence. Some variables of a link are its boundary: the out
// variables of one repeat are the in variables of the next, in order (of the
// next repeat of the same link, then of the next link). Repeats can have
// different assignments; solutions list them as runs of equal repeats. A
// variable in `shared` has one value over the entire chain (the layout of a
// tied parameter).
//
// costOf and check specify the solver (chain_solver.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H
#define MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::planner {

/// Reports that a problem is too large to be solved.
struct TooLarge : std::length_error {
  using std::length_error::length_error;
};

/// A time of kInfinity forbids a choice; a limit or cutoff of kInfinity
/// excludes nothing.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Holds a table over `scope`, row-major: the last variable of the scope varies
/// fastest.
struct CostTable {
  std::vector<int> scope;   ///< distinct variables, any order; empty: constant
  std::vector<double> time; ///< seconds; +infinity forbids the combination
  std::vector<double> memory; ///< bytes; empty means zero everywhere
};

struct Problem {
  std::vector<int> domains; ///< per variable, >= 1
  std::vector<CostTable> tables;
};

/// Holds one value per variable.
using Assignment = std::vector<int>;

struct Cost {
  double time = 0.0; ///< seconds; +infinity: forbidden
  double memory = 0.0;
};

/// Returns the cost of one assignment.
Cost costOf(const Problem &problem, const Assignment &assignment);

/// Returns a sentence for every requirement in the comments above that the
/// problem violates; empty if the problem is valid.
std::vector<std::string> check(const Problem &problem);

/// Describes a problem that occurs `repeat` times in sequence.
struct Link {
  Problem problem;
  int repeat = 1;
  /// These are the boundary variables. The out variables of a repeat must have
  /// the same domains as the in variables of the next.
  std::vector<int> in, out;
  /// Pairs each shared variable of this link with its shared id.
  std::vector<std::pair<int, int>> shared;
};

struct ChainProblem {
  std::vector<Link> links;
  /// Limits the memory of all repeats together, in bytes.
  double memoryLimit = kInfinity;
};

/// Describes `count` consecutive repeats of one link with the same assignment.
struct Run {
  int link = 0;
  int count = 1;
  Assignment assignment;
};

struct ChainSolution {
  /// If false, and the solver did not give up, no legal solution fits; `runs`
  /// and `cost` are then those of the legal solution with the least memory.
  bool feasible = false;
  std::vector<Run> runs; ///< in chain order
  Cost cost;             ///< cost of all repeats together
  /// Holds a lower bound of the time within the limit; +infinity if no solution
  /// fits. If `optimal`, the bound equals cost.time (to 1e-9 relative).
  double lowerBound = 0.0;
  bool optimal = false;
  /// Says whether the limit changed the result; if a solution is feasible and
  /// `limited` is false, the fastest solution without a limit fits.
  bool limited = false;
  /// Says whether the solver gave up because no solution is faster than the
  /// cutoff; `runs` is empty then.
  bool abandoned = false;
};

/// Returns a sentence for every requirement in the comments above that the
/// chain or one of its problems violates; empty if the chain is valid.
std::vector<std::string> check(const ChainProblem &chain);

/// Returns the cost of given runs; infinite if a boundary or shared value does
/// not match or the runs do not cover the chain.
Cost costOf(const ChainProblem &chain, const std::vector<Run> &runs);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

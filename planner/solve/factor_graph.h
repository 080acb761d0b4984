//===- factor_graph.h - Choice problems, as plain tables --------*- C++ -*-===//
//
// A choice problem has variables with small finite domains, and cost tables
// over a few variables each. Time and memory are sums over the tables; time is
// minimised, and memory can be limited.
//
// A chain is a sequence of links. Each link is a problem that occurs `repeat`
// times in sequence. The out variables of a repeat equal, in order, the in
// variables of the next repeat, which is of the same or of the next link.
// Repeats can have different assignments; solutions list runs of equal repeats.
// A variable in `shared` has one value over the entire chain, such as the
// layout of a tied parameter.
//
// costOf() and check() are the specification of the solver (chain_solver.h).
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

struct TooLarge : std::length_error {
  using std::length_error::length_error;
};

/// A time of kInfinity forbids a choice. A limit or cutoff of kInfinity
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

Cost costOf(const Problem &problem, const Assignment &assignment);

/// Returns a sentence for every requirement in the comments above that the
/// problem violates; empty if the problem is valid.
std::vector<std::string> check(const Problem &problem);

struct Link {
  Problem problem;
  int repeat = 1;
  /// The out variables of a repeat must have the same domains as the in
  /// variables of the next repeat.
  std::vector<int> in, out;
  /// Pairs each shared variable of this link with its shared id.
  std::vector<std::pair<int, int>> shared;
};

struct ChainProblem {
  std::vector<Link> links;
  double memoryLimit = kInfinity; ///< bytes of all repeats together
};

/// Describes `count` consecutive repeats of one link with the same assignment.
struct Run {
  int link = 0;
  int count = 1;
  Assignment assignment;
};

struct ChainSolution {
  /// Says whether `runs` fits. If `feasible` is false and the solver did not
  /// give up, no legal solution fits, and `runs` is the legal solution with the
  /// least memory.
  bool feasible = false;
  std::vector<Run> runs; ///< in chain order
  Cost cost;             ///< of all repeats together
  /// Holds a lower bound of the time within the limit; +infinity if no solution
  /// fits. If `optimal`, the bound equals cost.time up to a relative rounding
  /// error of 1e-9.
  double lowerBound = 0.0;
  bool optimal = false;
  /// Says whether the memory limit excluded the fastest solution.
  bool limited = false;
  /// Says whether the solver gave up, because no solution is faster than the
  /// cutoff; `runs` is empty then.
  bool abandoned = false;
};

/// Returns a sentence for every error of the chain and of its problems.
std::vector<std::string> check(const ChainProblem &chain);

/// Returns the cost of `runs`; infinite if a boundary or shared value does not
/// match, or the runs do not cover the chain.
Cost costOf(const ChainProblem &chain, const std::vector<Run> &runs);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_FACTOR_GRAPH_H

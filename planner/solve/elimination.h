//===- elimination.h - Exact minimum over inner variables -------*- C++ -*-===//
//
// Minimises a weighted sum of time and memory by bucket elimination (Dechter
// 1999). The result is a table over the kept variables: each entry is the least
// cost over all assignments of the other variables. decode() returns an
// assignment of that cost.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_H

#include <vector>

#include "planner/solve/elimination_program.h"

namespace mtplan::planner {

/// Holds the weights of the minimised sum. Combinations of infinite time are
/// forbidden even if the weight of time is 0.
struct Objective {
  double time = 1.0;
  double memory = 0.0;
  double of(double seconds, double bytes) const;
};

/// Solves problems of one shape: `prepare` is called once per set of costs, and
/// `run` once per objective. Later calls reuse the program and its arena,
/// unless the live values change.
class Elimination {
public:
  Elimination(const Problem &shape, std::vector<int> keep);

  /// Compiles the program if the live values of `problem` differ from those of
  /// the last call. Returns false if no assignment is legal; run() must not be
  /// called then. Problems must have the shape's domains and scopes.
  bool prepare(const Problem &problem);

  void run(const Problem &problem, Objective objective);

  /// Returns the least costs over the live values of the kept variables,
  /// row-major. The table is valid after run().
  const double *table() const;
  std::size_t tableSize() const { return program().buckets.back().size; }

  /// Returns a cheapest assignment with the given values of the kept variables
  /// (in the order of `keep`, without repetitions). Variables are decided in
  /// reverse order of elimination, and the lowest value wins ties. The result
  /// is empty if no such assignment is legal.
  Assignment decode(const std::vector<int> &keptValues) const;

  /// Returns the number of compilations. Data derived from program() is stale
  /// once the number changes.
  int generation() const { return generationCount; }
  const EliminationProgram &program() const { return compiled; }
  const std::vector<double> &arena() const { return storage; }

private:
  void load(const Problem &problem, Objective objective);
  void join(const Bucket &bucket);

  Problem shape; ///< domains and scopes, without costs
  std::vector<int> keep;
  EliminationProgram compiled;
  int generationCount = 0;
  std::vector<double> storage;
  std::vector<double> scalarSums;
  std::vector<const double *> cursors;
  std::vector<int> counters;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_ELIMINATION_H

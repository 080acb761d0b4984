//===- elimination.h - Exact minimum over a problem's inside ----*- C++ -*-===//
//
// Bucket elimination (Dechter 1999) for a weighted sum of time and memory. The
// result is a table over the kept variables, each entry the least cost of any
// assignment of the others, and for any of its entries such an assignment.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SOLVE_ELIMINATION_H
#define MTPLAN_PLANNER_SOLVE_ELIMINATION_H

#include <vector>

#include "planner/solve/elimination_program.h"

namespace mtplan::planner {

/// The objective to minimise. With `time` 0 it is memory alone; combinations of
/// infinite time stay forbidden under every objective.
struct Objective {
  double time = 1.0;
  double memory = 0.0;
  double of(double seconds, double bytes) const;
};

/// One object serves one structure: `prepare` once per set of numbers, `run`
/// once per objective. It does not allocate after the first `prepare`, unless
/// the infinities of the new numbers leave other values alive.
class Elimination {
public:
  Elimination(const Problem &shape, std::vector<int> keep);

  /// Returns false if no assignment is legal; the object must then not be run.
  /// Problems must have the shape's domains and scopes.
  bool prepare(const Problem &problem);

  void run(const Problem &problem, Objective objective);

  /// Returns the least costs over `keptScope`, live values alone, row-major.
  /// Call it after run.
  const double *table() const;
  std::size_t tableSize() const { return program().buckets.back().size; }

  /// Returns a cheapest assignment among those with these values of the kept
  /// variables (in the order of `keep`, first occurrences); of several, the one
  /// with the lowest values, variables eliminated last first. Empty if none is
  /// legal.
  Assignment decode(const std::vector<int> &keptValues) const;

  /// Grows with every recompilation: data derived from the program is stale
  /// when this differs.
  int generation() const { return generationCount; }
  const EliminationProgram &program() const { return compiled; }
  const std::vector<double> &arena() const { return storage; }

private:
  void load(const Problem &problem, Objective objective);
  void join(const Bucket &bucket);

  Problem shape; ///< domains and scopes, no numbers
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

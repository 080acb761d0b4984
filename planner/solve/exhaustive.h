//===- exhaustive.h - Tries every assignment --------------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SOLVE_EXHAUSTIVE_H
#define MTPLAN_PLANNER_SOLVE_EXHAUSTIVE_H

#include "planner/solve/chain.h"

namespace mtplan::planner {

/// Tries every assignment, in exponential time: the specification, for tests.
ChainSolution solveChainExhaustively(const ChainProblem &chain);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SOLVE_EXHAUSTIVE_H

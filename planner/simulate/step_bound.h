//===- step_bound.h - A lower bound of a simulated step ---------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_BOUND_H
#define MTPLAN_PLANNER_SIMULATE_STEP_BOUND_H

#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Returns a time that no step is shorter than (up to rounding), whatever its
/// gathers, reductions, offload and shared links cost: for each stage the work
/// before its first task, all of its own, and the work that must follow. It
/// counts forward, backward, sends and updates, and is exact for equal stages
/// under 1f1b without communication. O(stages * chunks * slices); no schedule
/// is built.
Seconds stepLowerBound(const StepProblem &problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_BOUND_H

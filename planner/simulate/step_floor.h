//===- step_floor.h - How soon a step can end at best -----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_FLOOR_H
#define MTPLAN_PLANNER_SIMULATE_STEP_FLOOR_H

#include "planner/simulate/step.h"

namespace mtplan::planner {

/// A time that no step is shorter than (up to rounding), whatever its gathers,
/// reduces, offload and shared links cost: for each stage what must come before
/// its first task, all of its work, and what must follow. Counts forward,
/// backward, sends and updates. Exact for equal stages under 1f1b without
/// communication. O(stages * chunks * slices), the schedule is not made.
Seconds stepFloor(const StepProblem &problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_FLOOR_H

//===- step_account.h - Where a stage's time goes ---------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_ACCOUNT_H
#define MTPLAN_PLANNER_SIMULATE_STEP_ACCOUNT_H

#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Splits each stage's step by what its compute stream does and, while that is
/// idle, by what it waits for: a running task that it needs (by that task's
/// kind), or the inputs of that task (bubble). `inFlight` is not set.
std::vector<StageUse> accountOf(const StepProblem &problem,
                                const TaskGraph &graph,
                                const std::vector<StepTask> &tasks,
                                const Timeline &timeline);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_ACCOUNT_H

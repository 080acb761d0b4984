//===- step_account.h - Where a stage's time goes ---------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_ACCOUNT_H
#define MTPLAN_PLANNER_SIMULATE_STEP_ACCOUNT_H

#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Splits each stage's step by what its compute stream does, and while it does
/// nothing by what it waits for: a task it needs is under way (that task's
/// kind), or what that task needs is not there yet (bubble). `inFlight` is left
/// as it is.
std::vector<StageUse> accountOf(const StepProblem &problem,
                                const TaskGraph &graph,
                                const std::vector<StepTask> &tasks,
                                const Timeline &timeline);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_ACCOUNT_H

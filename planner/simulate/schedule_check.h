//===- schedule_check.h - Whether a schedule runs to its end ----*- C++ -*-===//
//
// Stages communicate through channels: one for activations and one for
// gradients from each stage to each other. Sending never waits; a message is
// received only when it is the oldest of its channel, so both ends must agree
// on the order. A schedule that passes finishes whatever the durations are.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_SCHEDULE_CHECK_H
#define MTPLAN_PLANNER_SIMULATE_SCHEDULE_CHECK_H

#include <string>
#include <vector>

#include "planner/simulate/schedule.h"

namespace mtplan::planner {

/// "forward of micro-batch 3, chunk 1"
std::string describe(const Task &task);

/// Returns what is wrong with a schedule of `shape`, a sentence each: a task
/// that is missing, repeated or unknown; else two ends of a channel that
/// disagree; else a deadlock. Empty: every task runs. O(tasks).
std::vector<std::string> checkSchedule(const ScheduleShape &shape,
                                       const Schedule &schedule);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_SCHEDULE_CHECK_H

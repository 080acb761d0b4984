//===- schedule.h - The order of a pipeline's tasks -------------*- C++ -*-===//
//
// A pipeline of p stages (groups of ranks), each holding v chunks of
// consecutive segments: chunk c of stage i is the (c * p + i)-th part of the
// model. A schedule is, per stage, the order of its tasks; what a task waits
// for follows from the model's order and not from the schedule.
//
//   gpipe            all forwards, then all backwards in reverse order
//                    (Huang et al. 2019)
//   1f1b             one forward, one backward after a warm-up
//                    (Narayanan et al. 2021, section 2.2.1)
//   interleaved      1f1b over chunks of p micro-batches (same, 2.2.2);
//                    m must divide by p
//   zero-bubble      ZB-H1: 1f1b with backward in two tasks; stage i puts the
//                    gradients of weights off by i micro-batches, into the
//                    bubble at the end (Qi et al. 2023, section 2.1)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_SCHEDULE_H
#define MTPLAN_PLANNER_SIMULATE_SCHEDULE_H

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace mtplan::planner {

enum class ScheduleKind : std::uint8_t {
  gpipe,
  oneForwardOneBackward,
  interleaved,
  zeroBubble
};
const char *nameOf(ScheduleKind kind); ///< "gpipe", "1f1b", ...

enum class TaskKind : std::uint8_t {
  forward,
  backward,       ///< all of it; or only the inputs' gradients in zero-bubble
  weightGradient, ///< zero-bubble only
};

struct Task {
  TaskKind kind = TaskKind::forward;
  int chunk = 0;      ///< of this stage, 0 .. chunks - 1
  int microBatch = 0; ///< 0 .. microBatches - 1
  auto operator<=>(const Task &) const = default;
};

struct ScheduleShape {
  ScheduleKind kind = ScheduleKind::oneForwardOneBackward;
  int stages = 1;       ///< p >= 1
  int chunks = 1;       ///< v >= 1; more than one only if interleaved
  int microBatches = 1; ///< m >= 1
};

/// One order of tasks per stage.
using Schedule = std::vector<std::vector<Task>>;

/// Returns why a shape has no schedule, a sentence each, with both numbers and
/// the nearest values that are possible; empty if it has one.
std::vector<std::string> check(const ScheduleShape &shape);

/// Returns the tasks of a stage before its steady state of one forward, one
/// backward: forwards alone. At most microBatches * chunks.
int warmUp(const ScheduleShape &shape, int stage);

/// Returns the schedule of a shape that passes check().
Schedule scheduleOf(const ScheduleShape &shape);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_SCHEDULE_H

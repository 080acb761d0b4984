//===- timeline_events.h - Tasks in order of time ---------------*- C++ -*-===//
//
// The part of timeline.h for tasks that share links: a task's progress depends
// on the other users, so that events must be processed in order of time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_TIMELINE_EVENTS_H
#define MTPLAN_PLANNER_SIMULATE_TIMELINE_EVENTS_H

#include "planner/simulate/timeline.h"

namespace mtplan::planner {

/// The successors of each task, streams' queues included.
struct Successors {
  std::vector<int> begin, tasks; ///< compressed rows
  std::vector<int> waiting;      ///< per task: the number of dependencies left

  explicit Successors(const TaskGraph &graph);
};

/// Fills start and finish of every task that runs and leaves the others alone.
/// Returns how many ran.
int runEvents(const TaskGraph &graph, Successors &successors,
              Timeline &timeline);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_TIMELINE_EVENTS_H

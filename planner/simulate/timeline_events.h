//===- timeline_events.h - Tasks in the order of time -----------*- C++ -*-===//
//
// The part of timeline.h that is needed when tasks share links: how far a task
// has come depends on who else is there, so time has to be walked through.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_TIMELINE_EVENTS_H
#define MTPLAN_PLANNER_SIMULATE_TIMELINE_EVENTS_H

#include "planner/simulate/timeline.h"

namespace mtplan::planner {

/// Who waits for whom, streams' queues included, turned around.
struct Followers {
  std::vector<int> begin, tasks; ///< compressed rows
  std::vector<int> waiting;      ///< per task: how many it waits for

  explicit Followers(const TaskGraph &graph);
};

/// Fills start and finish of every task that runs; the others are left alone.
/// Returns how many ran.
int runEvents(const TaskGraph &graph, Followers &followers, Timeline &timeline);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_TIMELINE_EVENTS_H

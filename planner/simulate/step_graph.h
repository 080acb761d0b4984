//===- step_graph.h - The tasks of one training step ------------*- C++ -*-===//
//
// Builds the task graph of a training step, which timelineOf() simulates.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_GRAPH_H
#define MTPLAN_PLANNER_SIMULATE_STEP_GRAPH_H

#include "planner/simulate/step.h"

namespace mtplan::planner {

struct StepGraph {
  TaskGraph graph;
  std::vector<StepTask> tasks; ///< empty unless `describe` is true
  std::int64_t messages = 0;   ///< number of sends from stage to stage
};

/// Returns the tasks. Each follows its dependencies, so that the timeline needs
/// one pass unless links are shared.
/// \throws std::invalid_argument if the schedule deadlocks
StepGraph stepGraphOf(const StepProblem &problem, const Schedule &schedule,
                      bool describe);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_GRAPH_H

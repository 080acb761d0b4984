//===- step_graph.h - The tasks of one training step ------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SIMULATE_STEP_GRAPH_H
#define MTPLAN_PLANNER_SIMULATE_STEP_GRAPH_H

#include "planner/simulate/step.h"

namespace mtplan::planner {

struct StepGraph {
  TaskGraph graph;
  std::vector<StepTask> tasks; ///< empty unless asked for
  std::int64_t messages = 0;
};

/// Returns the tasks, each after all it depends on, so that without shared
/// links the timeline is one pass.
/// \throws std::invalid_argument if the schedule does not finish.
StepGraph stepGraphOf(const StepProblem &problem, const Schedule &schedule,
                      bool describe);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SIMULATE_STEP_GRAPH_H

//===- tasks.h - In which order a stage works -------------------*- C++ -*-===//
//
// A schedule gives every stage its tasks, forward or backward through a chunk
// of the model for one micro-batch. Written into the module they are the same
// for whoever runs it and whoever finds room for it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_TASKS_H
#define MTPLAN_PASSES_SCHEDULE_TASKS_H

#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"
#include "planner/simulate/schedule.h"

namespace mtplan::passes {

/// By stage, the tasks of a schedule by the chunks of `partitioned`, a module
/// split over its stages. Gradients of weights are made with those of inputs,
/// which nobody else waits for.
std::vector<std::vector<ir::StageTask>> tasksOf(mlir::ModuleOp partitioned,
                                                planner::ScheduleKind kind,
                                                int microBatches);

/// Writes the tasks and the number of micro-batches into `partitioned`.
void writeTasks(mlir::ModuleOp partitioned, planner::ScheduleKind kind,
                int microBatches);

/// What writeTasks wrote; empty if nothing.
std::vector<std::vector<ir::StageTask>> readTasks(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_TASKS_H

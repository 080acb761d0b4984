//===- tasks.h - In which order a stage works -------------------*- C++ -*-===//
//
// A schedule gives every stage its tasks: forward or backward through a chunk
// of the model for one micro-batch. The module holds them, so that passes and
// codegen read the same order.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_TASKS_H
#define MTPLAN_PASSES_SCHEDULE_TASKS_H

#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"
#include "planner/simulate/schedule.h"

namespace mtplan::passes {

/// Returns, by stage, the tasks of a schedule for the chunks of `partitioned`,
/// a module that is split over stages. Gradients of weights are made together
/// with those of inputs, because no other stage waits for them.
std::vector<std::vector<ir::StageTask>> tasksOf(mlir::ModuleOp partitioned,
                                                planner::ScheduleKind kind,
                                                int microBatches);

/// Writes the tasks and the number of micro-batches into `partitioned`.
void writeTasks(mlir::ModuleOp partitioned, planner::ScheduleKind kind,
                int microBatches);

/// Returns what writeTasks wrote, or nothing.
std::vector<std::vector<ir::StageTask>> readTasks(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_TASKS_H

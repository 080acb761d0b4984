//===- stage_contents.h - What a stage holds and does -----------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H
#define MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H

#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"
#include "planner/simulate/schedule.h"

namespace mtplan::passes {

/// What one stage holds, of a partitioned module.
struct StageContents {
  std::vector<ir::SegmentOp> segments; ///< in module order
  ir::UpdateOp update;                 ///< may be null
  std::vector<ir::StageTask> tasks;
};

/// Returns the contents by stage, none if `module` has no tasks.
std::vector<StageContents> contentsOfStages(mlir::ModuleOp module);

/// Whether labels of the segment's parameters have a `*`, be there one copy or
/// many.
bool isOfCopies(ir::SegmentOp segment);

/// Whether a program has an instruction for `op`, or for what is fused with it:
/// reads of parameters and accumulators, and stores, only name places.
bool isInstruction(mlir::Operation *op);

/// The copies of a parameter that an operation of an update works on.
struct UpdatedCopies {
  ir::SegmentOp holder;              ///< null: the parameter has no copies
  std::int64_t first = 0, count = 1; ///< counted from the holder's first
};

/// Returns the operation of the update that names the parameter `op` works on.
mlir::Operation *originOf(mlir::Operation *op);

/// Fails with a diagnostic if the copies are not those of one segment.
mlir::FailureOr<UpdatedCopies> updatedCopies(const StageContents &stage,
                                             mlir::Operation *op);

/// Whether `sum` is a gradient of a parameter, and not a report.
bool isGradient(const StageContents &stage, ir::AccumulatedOp sum);

/// Whether an operand of a yield has a value of its own: one that is made in
/// the block and yielded once, or the block's argument of the same position.
bool isSeparate(mlir::OpOperand &carried);

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

#endif // MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H

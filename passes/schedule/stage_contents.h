//===- stage_contents.h - Segments and tasks of a stage ---------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H
#define MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H

#include <vector>

#include "ir/interpret/interpret.h"
#include "ir/mtp.h"
#include "planner/simulate/schedule.h"

namespace mtplan::passes {

struct StageContents {
  std::vector<ir::SegmentOp> segments; ///< in module order
  ir::UpdateOp update;                 ///< may be null
  std::vector<ir::StageTask> tasks;
};

/// Returns the contents by stage, or an empty list if `module` has no tasks.
std::vector<StageContents> contentsOfStages(mlir::ModuleOp module);

/// Returns whether a parameter of the segment has a label with `*`. The segment
/// may still have a single layer.
bool isOfCopies(ir::SegmentOp segment);

/// Returns whether `op` becomes an instruction or a part of an instruction.
/// Reads of parameters and accumulators, and stores, only refer to memory.
bool isInstruction(mlir::Operation *op);

/// Identifies the layers of a parameter that an operation of an update
/// processes.
struct UpdatedCopies {
  ir::SegmentOp holder;              ///< null if the label has no `*`
  std::int64_t first = 0, count = 1; ///< relative to the holder's first layer
};

/// Returns the operation whose label names the parameter that `op` processes.
mlir::Operation *originOf(mlir::Operation *op);

/// Returns the layers that `op` processes. Fails, with a diagnostic, if the
/// layers are not all in one segment.
mlir::FailureOr<UpdatedCopies> updatedCopies(const StageContents &stage,
                                             mlir::Operation *op);

/// Returns whether `sum` is the gradient of a parameter and not a reported
/// scalar.
bool isGradient(const StageContents &stage, ir::AccumulatedOp sum);

/// Returns whether an operand of a yield needs no copy to have memory of its
/// own. No earlier operand of the yield may be the same value. The value must
/// be computed in the block (not a parameter), or be the block's argument at
/// the same position.
bool isSeparate(mlir::OpOperand &carried);

/// Returns, by stage, the tasks of a schedule for the chunks of `partitioned`,
/// a module that is split over stages. Backward tasks include weight gradients,
/// because no other stage waits for weight gradients.
std::vector<std::vector<ir::StageTask>> tasksOf(mlir::ModuleOp partitioned,
                                                planner::ScheduleKind kind,
                                                int microBatches);

void writeTasks(mlir::ModuleOp partitioned, planner::ScheduleKind kind,
                int microBatches);

/// Returns, by stage, the tasks that writeTasks() wrote, or an empty list if
/// there are none.
std::vector<std::vector<ir::StageTask>> readTasks(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_STAGE_CONTENTS_H

//===- stages.h - Which stage holds what ------------------------*- C++ -*-===//
//
// A pipeline assigns the chunks of a model to its stages in turn, round after
// round. Each segment names its chunk, from which the stage of everything else
// follows.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_STAGES_H
#define MTPLAN_PASSES_SCHEDULE_STAGES_H

#include <set>

#include "ir/mtp.h"
#include "planner/search/space/pipeline_parts.h"

namespace mtplan::passes {

/// Writes into the planned `module` the number of stages, and for each segment
/// which of `parts` it belongs to. No segment may have copies in two parts.
void placeOnStages(mlir::ModuleOp module,
                   const std::vector<planner::PipelinePart> &parts, int stages);

/// Returns the number of stages of `module`, placed on stages or split over
/// them; 1 without a pipeline.
std::int64_t stagesOf(mlir::ModuleOp module);

/// Returns the stage of a segment in a module of `stages` stages.
std::int64_t stageOf(ir::SegmentOp segment, std::int64_t stages);

/// Returns the stages that add to the accumulator that `read` reads, in a
/// module of `stages` stages. If it holds a gradient, these are the holders of
/// its parameter.
std::set<std::int64_t> holdersOf(ir::AccumulatedOp read, std::int64_t stages);

/// Whether `op` sums over stages.
bool sumsOverStages(mlir::Operation *op);

/// Returns the mesh axis of a collective, or null if `op` has none.
mlir::StringAttr axisOf(mlir::Operation *op);

/// Returns the chain of collectives that begins at `value`. Each takes the
/// result of the one before, which nothing else uses.
llvm::SmallVector<mlir::Operation *> collectivesBehind(mlir::Value value);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_STAGES_H

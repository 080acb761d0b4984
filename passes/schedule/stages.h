//===- stages.h - The assignment of segments to stages ----------*- C++ -*-===//
//
// A pipeline assigns the chunks of a model to its stages round-robin. Each
// segment has the number of its chunk, and this number determines the stage.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_STAGES_H
#define MTPLAN_PASSES_SCHEDULE_STAGES_H

#include <set>

#include "ir/mtp.h"
#include "planner/search/space/pipeline_parts.h"

namespace mtplan::passes {

/// Writes the number of stages into the planned `module`, and a chunk into each
/// segment: the index of the part that has all layers of the segment. Does
/// nothing if `stages` is 1.
void placeOnStages(mlir::ModuleOp module,
                   const std::vector<planner::PipelinePart> &parts, int stages);

/// Returns the number of stages of `module`, or 1 without a pipeline. The
/// module may already be split over the stages.
std::int64_t stagesOf(mlir::ModuleOp module);

std::int64_t stageOf(ir::SegmentOp segment, std::int64_t stages);

/// Checks that the chunks of segments are numbered from 0 in order, and that
/// all stages have the same number of chunks.
mlir::LogicalResult checkChunks(mlir::ModuleOp module, std::int64_t stages);

/// Returns the stages that add to the accumulator that `read` reads, in a
/// module of `stages` stages. For a gradient, these stages hold the parameter.
std::set<std::int64_t> holdersOf(ir::AccumulatedOp read, std::int64_t stages);

bool sumsOverStages(mlir::Operation *op);

/// Returns the mesh axis of a collective, or null if `op` has none.
mlir::StringAttr axisOf(mlir::Operation *op);

/// Returns the chain of collectives that begins at `value`. Each collective
/// reads the result of the previous one, and this result has no other use.
llvm::SmallVector<mlir::Operation *> collectivesAfter(mlir::Value value);

/// Checks that every stage updates the parameters that it holds, and that the
/// gradient of a shared parameter is summed over exactly the stages that hold
/// it, after the same operations on each stage. All segments of `module` must
/// have chunks.
mlir::LogicalResult verifyUpdates(mlir::ModuleOp module, std::int64_t stages);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_STAGES_H

//===- stages.h - Which stage holds what ------------------------*- C++ -*-===//
//
// A pipeline deals the chunks of a model out to its stages, one after the other
// and round again. Segments say which chunk they are of; the rest follows.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_STAGES_H
#define MTPLAN_PASSES_SCHEDULE_STAGES_H

#include <set>

#include "ir/mtp.h"
#include "planner/search/pipeline_parts.h"

namespace mtplan::passes {

/// Writes into `module`, planned, which of `parts` each segment is of, and the
/// number of stages. No segment may have copies in two parts.
void placeOnStages(mlir::ModuleOp module,
                   const std::vector<planner::PipelinePart> &parts, int stages);

/// Number of stages that `module`, placed on them or split over them, has; 1
/// without a pipeline.
std::int64_t stagesOf(mlir::ModuleOp module);

/// The stage of a segment of a module with so many.
std::int64_t stageOf(ir::SegmentOp segment, std::int64_t stages);

/// The stages of a module with so many that add to what `read` reads: the
/// holders of a parameter, if it is one's gradient.
std::set<std::int64_t> holdersOf(ir::AccumulatedOp read, std::int64_t stages);

/// Whether `op` sums over stages.
bool sumsOverStages(mlir::Operation *op);

/// The mesh axis that `op`, if it is a collective, runs over; else null.
mlir::StringAttr axisOf(mlir::Operation *op);

/// What becomes of `value` between ranks before anything else: collectives,
/// each over the result of the one before, which nothing else uses.
llvm::SmallVector<mlir::Operation *> collectivesBehind(mlir::Value value);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_STAGES_H

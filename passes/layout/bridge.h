//===- bridge.h - Between the IR and the planner's graph --------*- C++ -*-===//
//
// Translates a differentiated module to the planner's ModelGraph, and writes a
// plan into the module as strategies, layouts and `mtp.reshard`s.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_LAYOUT_BRIDGE_H
#define MTPLAN_PASSES_LAYOUT_BRIDGE_H

#include <vector>

#include "ir/mtp.h"
#include "planner/search/segment/segment_plan.h"

namespace mtplan::passes {

/// Returns the planner's graph of the differentiated `module`. Operators and
/// tensors are in program order. The time is linear in the size of the module.
planner::ModelGraph buildModelGraph(mlir::ModuleOp module);

/// Splits segments whose layers have different plans, and then writes
/// strategies, layouts, reshards and the mesh. `plans` are in program order and
/// cover every layer.
void applyPlan(mlir::ModuleOp module, const planner::ModelGraph &graph,
               const std::vector<planner::SegmentPlan> &plans,
               const planner::Mesh &mesh);

/// Splits a repeated segment before the layers `cuts`, so that each part can be
/// planned by itself. The cuts are in ascending order, and layers are numbered
/// from the segment's `first`.
void splitSegment(ir::SegmentOp segment, llvm::ArrayRef<int> cuts);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_LAYOUT_BRIDGE_H

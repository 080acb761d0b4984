//===- bridge.h - Between the IR and the planner's graph --------*- C++ -*-===//
//
// This folder alone builds the planner's graph: a differentiated module becomes
// a ModelGraph, and what was chosen is written into the module as strategies,
// layouts and `mtp.reshard`s. passes/schedule and passes/verify read what was
// planned (passes.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_LAYOUT_BRIDGE_H
#define MTPLAN_PASSES_LAYOUT_BRIDGE_H

#include <vector>

#include "ir/mtp.h"
#include "planner/search/segment/segment_plan.h"

namespace mtplan::passes {

/// The differentiated `module` in the planner's words. Operators and tensors
/// are in program order. Complexity: linear in the module.
planner::ModelGraph buildModelGraph(mlir::ModuleOp module);

/// Cuts segments where `plans` say that copies are laid out differently, then
/// writes strategies, layouts and reshards, and the mesh. `plans` are in chain
/// order and cover every copy.
void applyPlan(mlir::ModuleOp module, const planner::ModelGraph &graph,
               const std::vector<planner::SegmentPlan> &plans,
               const planner::Mesh &mesh);

/// Cuts a repeated segment before copies `cuts` (ascending, inside it), so that
/// each part can be pinned and laid out on its own.
void splitSegment(ir::SegmentOp segment, llvm::ArrayRef<int> cuts);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_LAYOUT_BRIDGE_H

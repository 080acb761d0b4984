//===- planner_op.h - An operator in the planner's words --------*- C++ -*-===//
//
// Translation between the IR's attributes and the planner's plain values, op by
// op. Layouts of operands and results follow from an op's factor rule and its
// strategy in one place, planner/graph/strategy.h; everyone here asks it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_LAYOUT_PLANNER_OP_H
#define MTPLAN_PASSES_LAYOUT_PLANNER_OP_H

#include <optional>

#include "ir/mtp.h"
#include "planner/graph/strategy.h"

namespace mtplan::passes {

planner::Mesh toPlanner(ir::MeshAttr mesh);
ir::MeshAttr toAttr(mlir::MLIRContext *context, const planner::Mesh &mesh);

/// Fails, with no diagnostic, if the layout names an axis the mesh lacks.
std::optional<planner::Layout> toPlanner(ir::LayoutAttr layout,
                                         const planner::Mesh &mesh);
ir::LayoutAttr toAttr(mlir::MLIRContext *context, const planner::Layout &layout,
                      const planner::Mesh &mesh);

/// Factors, uses and roles; tensors are numbered by operand and result
/// position only. Splits of data factors are left as `feature`.
planner::Op toPlanner(ir::ComputeOp op);

/// Empty if a factor is not the op's or an axis not the mesh's.
std::optional<planner::Strategy> toPlanner(ir::StrategyAttr strategy,
                                           const planner::Op &op,
                                           const planner::Mesh &mesh);
ir::StrategyAttr toAttr(mlir::MLIRContext *context,
                        const planner::Strategy &strategy,
                        const planner::Op &op, const planner::Mesh &mesh);

/// The mesh of the module around `op`, or null.
ir::MeshAttr meshAround(mlir::Operation *op);

/// The layout in which `value` is made: by its op's strategy, or as the layout
/// of its parameter, input, accumulator, reshard or boundary says. Empty where
/// that has not been planned.
std::optional<planner::Layout> layoutOf(mlir::Value value,
                                        const planner::Mesh &mesh);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_LAYOUT_PLANNER_OP_H

//===- planner_op.h - Operators in the types of the planner -----*- C++ -*-===//
//
// Translates between the IR's attributes and the planner's plain types, in both
// directions. planner/graph/strategy.h derives the layouts of operands and
// results from an operator's factor rule and its strategy.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_LAYOUT_PLANNER_OP_H
#define MTPLAN_PASSES_LAYOUT_PLANNER_OP_H

#include <optional>

#include "ir/mtp.h"
#include "planner/graph/strategy.h"

namespace mtplan::passes {

/// These functions convert a mesh between the two representations.
planner::Mesh toPlanner(ir::MeshAttr mesh);
ir::MeshAttr toAttr(mlir::MLIRContext *context, const planner::Mesh &mesh);

/// Returns the layout in the planner's type, or nothing if the layout names an
/// axis that the mesh lacks.
std::optional<planner::Layout> toPlanner(ir::LayoutAttr layout,
                                         const planner::Mesh &mesh);
ir::LayoutAttr toAttr(mlir::MLIRContext *context, const planner::Layout &layout,
                      const planner::Mesh &mesh);

/// Returns the planner's description of an operator. Tensors are numbered by
/// operand and result position, and data factors have the split `feature`.
planner::Op toPlanner(ir::ComputeOp op);

/// Returns the split of a factor with this role, which is `feature` for data.
planner::Split splitOf(ir::FactorRole role);

/// Returns the strategy in the planner's type, or nothing if the strategy names
/// a factor that the operator lacks or an axis that the mesh lacks.
std::optional<planner::Strategy> toPlanner(ir::StrategyAttr strategy,
                                           const planner::Op &op,
                                           const planner::Mesh &mesh);
ir::StrategyAttr toAttr(mlir::MLIRContext *context,
                        const planner::Strategy &strategy,
                        const planner::Op &op, const planner::Mesh &mesh);

/// Returns the layout of `value`, from the strategy of its operator or from the
/// layout of its parameter, input, accumulator, reshard or segment boundary.
/// Returns nothing if the layout has not been planned.
std::optional<planner::Layout> layoutOf(mlir::Value value,
                                        const planner::Mesh &mesh);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_LAYOUT_PLANNER_OP_H

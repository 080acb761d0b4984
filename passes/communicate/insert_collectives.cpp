//===- insert_collectives.cpp - The program of one rank -------------------===//

#include "mlir/IR/Builders.h"

#include "passes/layout/planner_op.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_INSERTCOLLECTIVESPASS
#include "passes/passes.h.inc"

namespace {

RankedTensorType localType(RankedTensorType type, const planner::Layout &layout,
                           const planner::Mesh &mesh) {
  std::vector<std::int64_t> shape(type.getShape());
  return RankedTensorType::get(planner::localShape(shape, layout, mesh),
                               type.getElementType());
}

Value emitStep(OpBuilder &builder, Location loc, Value input,
               const planner::ReshardStep &step, Type type, StringAttr axis,
               StringAttr cause) {
  bool max = step.reduction == planner::Reduction::max;
  switch (step.kind) {
  case planner::StepKind::allReduce:
    return builder.create<ir::AllReduceOp>(loc, type, input, axis, max, cause);
  case planner::StepKind::reduceScatter:
    return builder.create<ir::ReduceScatterOp>(loc, type, input, axis,
                                               step.toDim, max, cause);
  case planner::StepKind::allGather:
    return builder.create<ir::AllGatherOp>(loc, type, input, axis, step.fromDim,
                                           cause);
  case planner::StepKind::allToAll:
    return builder.create<ir::AllToAllOp>(loc, type, input, axis, step.toDim,
                                          step.fromDim, cause);
  case planner::StepKind::slice:
    return builder.create<ir::SliceOp>(loc, type, input, axis, step.toDim,
                                       cause);
  case planner::StepKind::maskToRoot:
    return builder.create<ir::MaskOp>(loc, type, input, axis, cause);
  }
  llvm_unreachable("all steps are named");
}

// Replaces a reshard by collectives and local steps. The operand of the reshard
// must already have the shape of one rank.
// \param global  type of the reshard before partitioning
void lower(ir::ReshardOp reshard, RankedTensorType global,
           const planner::Mesh &mesh) {
  OpBuilder builder(reshard);
  Value value = reshard.getInput();
  for (const planner::ReshardStep &step :
       planner::reshardSteps(*toPlanner(reshard.getSource(), mesh),
                             *toPlanner(reshard.getTarget(), mesh)))
    value = emitStep(builder, reshard.getLoc(), value, step,
                     localType(global, step.result, mesh),
                     builder.getStringAttr(mesh.axes[step.axis].name),
                     reshard.getCauseAttr());
  reshard.replaceAllUsesWith(value);
  reshard.erase();
}

struct InsertCollectivesPass
    : impl::InsertCollectivesPassBase<InsertCollectivesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module->hasAttr(ir::kPartitionedAttrName))
      return;
    ir::MeshAttr attr = ir::meshOf(module);
    if (!attr) {
      module.emitError("has no mesh to be partitioned for");
      return signalPassFailure();
    }
    planner::Mesh mesh = toPlanner(attr);

    // All layouts are read before any type changes.
    SmallVector<std::pair<Value, planner::Layout>> layouts;
    SmallVector<std::pair<ir::ReshardOp, RankedTensorType>> reshards;
    auto note = [&](Value value, Operation *owner) {
      std::optional<planner::Layout> layout = layoutOf(value, mesh);
      if (!layout)
        return owner->emitError("has a value without a layout");
      layouts.emplace_back(value, *layout);
      return InFlightDiagnostic();
    };
    WalkResult planned = module.walk([&](Operation *op) -> WalkResult {
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          if (failed(LogicalResult(note(argument, op))))
            return WalkResult::interrupt();
      for (Value result : op->getResults())
        if (failed(LogicalResult(note(result, op))))
          return WalkResult::interrupt();
      if (auto reshard = llvm::dyn_cast<ir::ReshardOp>(op))
        reshards.emplace_back(reshard, reshard.getType());
      return WalkResult::advance();
    });
    if (planned.wasInterrupted())
      return signalPassFailure();

    for (auto &[value, layout] : layouts) {
      auto type = llvm::cast<RankedTensorType>(value.getType());
      std::vector<std::int64_t> shape(type.getShape());
      if (shape.size() != layout.dims.size() ||
          !planner::divides(shape, layout, mesh)) {
        emitError(value.getLoc(), "layout ")
            << planner::toString(layout, mesh) << " does not fit " << type;
        return signalPassFailure();
      }
      value.setType(localType(type, layout, mesh));
    }
    for (auto &[reshard, global] : reshards)
      lower(reshard, global, mesh);
    module->setAttr(ir::kPartitionedAttrName, UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace mtplan::passes

//===- assign_streams.cpp - Assigns a stream to every operation -----------===//

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_ASSIGNSTREAMSPASS
#include "passes/passes.h.inc"

namespace {

StringRef streamOf(Operation *op, bool offloads) {
  if (llvm::isa<ir::SendOp, ir::ReceiveOp>(op))
    return "pipeline";
  if (llvm::isa<ir::AllReduceOp, ir::AllGatherOp, ir::ReduceScatterOp,
                ir::AllToAllOp>(op)) {
    const StringRef axis = axisOf(op).getValue();
    return axis == ir::kStageAxis    ? "pipeline"
           : ir::isReplicaAxis(axis) ? "data"
                                     : "tensor";
  }
  return offloads && llvm::isa<ir::AdamwOp>(op) ? "host" : "compute";
}

struct AssignStreams : impl::AssignStreamsPassBase<AssignStreams> {
  using AssignStreamsPassBase::AssignStreamsPassBase;

  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (llvm::isa_and_present<ir::SegmentOp, ir::BackwardOp, ir::UpdateOp>(
              op->getParentOp()) &&
          !llvm::isa<ir::ParameterOp, ir::BackwardOp, ir::YieldOp>(op))
        op->setAttr(ir::kStreamAttrName,
                    StringAttr::get(&getContext(), streamOf(op, offloads)));
    });
  }
};

} // namespace

} // namespace mtplan::passes

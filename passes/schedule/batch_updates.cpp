//===- batch_updates.cpp - Batches the updates of a layer -----------------===//

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_BATCHUPDATESPASS
#include "passes/passes.h.inc"

namespace {

// Returns whether `op` is a device kernel that processes updated weights.
bool isKernel(Operation *op) {
  auto stream = op->getAttrOfType<StringAttr>(ir::kStreamAttrName);
  return ir::isUpdated(op) && !llvm::isa<ir::StoreOp>(op) && stream &&
         stream.getValue() == StringRef(ir::kStreams[0]);
}

LogicalResult batch(const StageContents &stage) {
  ir::UpdateOp update = stage.update;
  Block &block = update.getBody().front();
  Builder builder(update.getContext());
  int64_t number = 0;
  for (Operation &op : block)
    if (isKernel(&op))
      op.removeAttr(ir::kBatchAttrName);
    else
      number = std::max(number, ir::batchOf(&op) + 1);
  SmallVector<Operation *> members;
  std::optional<UpdatedCopies> copies; // layers of the members
  const auto close = [&] {
    if (members.size() > 1 || (!members.empty() && copies->count > 1)) {
      for (Operation *op : members)
        op->setAttr(ir::kBatchAttrName, builder.getI64IntegerAttr(number));
      ++number;
    }
    members.clear();
  };
  for (Operation &op : block) {
    if (llvm::isa<ir::StoreOp>(op))
      continue; // the value is already in the parameter's memory
    if (!isKernel(&op)) {
      close();
      continue;
    }
    FailureOr<UpdatedCopies> own = updatedCopies(stage, &op);
    if (failed(own))
      return failure();
    const bool follows =
        !members.empty() && members.front()->getName() == op.getName() &&
        axisOf(members.front()) == axisOf(&op) && copies->first == own->first &&
        copies->count == own->count &&
        llvm::none_of(op.getOperands(), [&](Value operand) {
          return llvm::is_contained(members, operand.getDefiningOp());
        });
    if (!follows)
      close();
    copies = *own;
    members.push_back(&op);
  }
  close();
  return success();
}

struct BatchUpdates : impl::BatchUpdatesPassBase<BatchUpdates> {
  void runOnOperation() override {
    for (const StageContents &stage : contentsOfStages(getOperation()))
      if (stage.update && failed(batch(stage)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace mtplan::passes

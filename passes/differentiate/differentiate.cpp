//===- differentiate.cpp - From a model to a training step ----------------===//

#include "mlir/IR/Builders.h"

#include "passes/differentiate/build_backward.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/passes.h.inc"

namespace {

// Returns whether all segments have a backward half and the module an update.
// Fails if only some of these exist.
FailureOr<bool> isDifferentiated(ModuleOp module) {
  SmallVector<ir::SegmentOp> lacking;
  int segments = 0;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    ++segments;
    if (!segment.getBackward())
      lacking.push_back(segment);
  }
  auto updates = module.getOps<ir::UpdateOp>();
  bool hasUpdate = !updates.empty();
  auto found = segments - static_cast<int>(lacking.size());
  if (lacking.empty() && segments > 0 && hasUpdate)
    return true;
  if (found == 0 && !hasUpdate)
    return false;
  return module.emitError("is differentiated in part: ")
         << found << " of " << segments << " segments have an mtp.backward, "
         << (hasUpdate ? 1 : 0) << " of 1 mtp.update is there";
}

// Fails if the last segment yields values.
LogicalResult checkEnd(ModuleOp module) {
  ir::SegmentOp last;
  for (auto segment : module.getOps<ir::SegmentOp>())
    last = segment;
  if (!last || last.getYield().getValues().empty())
    return success();
  return last.getYield().emitOpError("hands on ")
         << last.getYield().getValues().size() << " values, but @"
         << last.getSymName() << " is the last segment";
}

// Accumulates `loss` under `label`, unless an operator already does.
void accumulateLoss(Operation *loss, StringRef label) {
  if (llvm::any_of(loss->getUsers(), [](Operation *reader) {
        return llvm::isa<ir::AccumulateOp>(reader);
      }))
    return;
  OpBuilder builder(loss->getContext());
  builder.setInsertionPointAfter(loss);
  builder.create<ir::AccumulateOp>(loss->getLoc(), label, loss->getResult(0),
                                   ir::LayoutAttr());
}

// Accumulates every loss, and fails if there is no mtp.token_loss. Balance
// losses keep their own labels, because every layer has one.
LogicalResult accumulateLosses(ModuleOp module) {
  int losses = 0;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    for (auto loss : segment.getBlock().getOps<ir::TokenLossOp>()) {
      ++losses;
      accumulateLoss(loss, "loss");
    }
    for (auto loss : segment.getBlock().getOps<ir::BalanceLossOp>())
      accumulateLoss(loss, loss.getLabel());
  }
  if (losses == 0)
    return module.emitError("has no mtp.token_loss to differentiate");
  return success();
}

struct DifferentiatePass : impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<bool> done = isDifferentiated(module);
    if (failed(done))
      return signalPassFailure();
    if (*done)
      return markAllAnalysesPreserved();
    if (failed(checkEnd(module)) || failed(accumulateLosses(module)))
      return signalPassFailure();
    for (auto segment : module.getOps<ir::SegmentOp>())
      if (failed(buildBackward(segment)))
        return signalPassFailure();
    if (failed(buildUpdate(module)))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes

//===- differentiate.cpp - From a model to a training step ----------------===//

#include "mlir/IR/Builders.h"

#include "passes/differentiate/build_backward.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/passes.h.inc"

namespace {

// Returns true if every segment has its backward half and the module its
// update, false if none has; fails in between.
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

// Fails unless the chain ends in its last segment.
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

// Reports `loss` under `label`, unless something does.
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

// Reports every loss; fails if there is none of tokens. Balance losses go by
// their own labels: every layer has one.
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

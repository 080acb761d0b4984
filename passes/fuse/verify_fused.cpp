//===- verify_fused.cpp - The gate behind fusion --------------------------===//

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYFUSEDPASS
#include "passes/passes.h.inc"

namespace {

// Checks, in this order:
// - an epilogue is what the operation right before it can be fused with;
// - a bias's gradient is a sum that shares the kernel of a product, right
//   behind it and its epilogue;
// - there is no other kind.
LogicalResult verify(Operation *op) {
  Operation *before = op->getPrevNode();
  if (ir::isFusedAs(op, ir::kEpilogue)) {
    if (!before || fusibleConsumerOf(before) != op)
      return op->emitOpError("is no epilogue of the operation before it");
    return success();
  }
  if (!ir::isFusedAs(op, ir::kBiasGradient))
    return op->emitOpError("is fused as ")
           << op->getAttr(ir::kFusedAttrName) << ", which is unknown";
  if (before && ir::isFusedAs(before, ir::kEpilogue))
    before = before->getPrevNode();
  auto product = llvm::dyn_cast_if_present<ir::EinsumOp>(before);
  auto sum = llvm::dyn_cast<ir::SumOp>(op);
  if (!product || !sum || !sharesKernel(product, sum))
    return op->emitOpError("is no bias's gradient of a product before it");
  return success();
}

struct VerifyFused : impl::VerifyFusedPassBase<VerifyFused> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      return ir::isFused(op) && failed(verify(op)) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

} // namespace mtplan::passes

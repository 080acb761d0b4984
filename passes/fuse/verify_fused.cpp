//===- verify_fused.cpp - Verifies fused kernels and batches --------------===//

#include <map>

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_VERIFYFUSEDPASS
#include "passes/passes.h.inc"

namespace {

// Checks, in this order:
// - an epilogue can be fused with the operation right before it;
// - no kinds of fusion occur except epilogues and bias gradients;
// - a bias gradient is a sum that shares the kernel of the product before it,
//   with at most the product's epilogue between them.
LogicalResult verify(Operation *op) {
  Operation *before = op->getPrevNode();
  if (ir::isFusedAs(op, ir::kEpilogue)) {
    if (!before || fusibleConsumerOf(before) != op)
      return op->emitOpError("is not an epilogue of the operation before it");
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

// Checks, in this order:
// - a batch has at least two products;
// - all products compute the same function, and a library can batch them;
// - the products share exactly one operand;
// - no product, and no operation fused with a product, reads a result of
//   another product.
LogicalResult verifyBatch(ArrayRef<ir::EinsumOp> products) {
  ir::EinsumOp first = products.front();
  if (products.size() < 2)
    return first.emitOpError("is the only product of batch ")
           << ir::batchOf(first);
  ir::EinsumOp second = products[1];
  const bool sharesLeft = second.getLhs() == first.getLhs();
  for (ir::EinsumOp product : products.drop_front()) {
    const auto fail = [&](const char *what) -> LogicalResult {
      InFlightDiagnostic error = product.emitOpError(what);
      error << ir::batchOf(product);
      error.attachNote(first.getLoc()) << "the batch begins here";
      return error;
    };
    if (!differOnlyInTensors(first, product) || !mayBeBatched(product))
      return fail("computes otherwise than the first of batch ");
    if ((product.getLhs() == first.getLhs()) != sharesLeft ||
        (product.getRhs() == first.getRhs()) == sharesLeft)
      return fail("does not share one operand with the others of batch ");
    for (Operation *op : kernelOf(product))
      for (Value operand : op->getOperands())
        if (llvm::any_of(products, [&](ir::EinsumOp other) {
              return other != product &&
                     llvm::is_contained(kernelOf(other),
                                        operand.getDefiningOp());
            }))
          return fail("reads the result of another product of batch ");
  }
  return success();
}

LogicalResult verifyBatches(Block &block) {
  std::map<int64_t, SmallVector<ir::EinsumOp>> batches;
  for (auto product : block.getOps<ir::EinsumOp>())
    if (ir::batchOf(product) >= 0)
      batches[ir::batchOf(product)].push_back(product);
  for (const auto &[number, products] : batches)
    if (failed(verifyBatch(products)))
      return failure();
  return success();
}

struct VerifyFused : impl::VerifyFusedPassBase<VerifyFused> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      const bool isProgram = llvm::isa<ir::SegmentOp, ir::BackwardOp>(op);
      const bool fails =
          (ir::isFused(op) && failed(verify(op))) ||
          (isProgram && failed(verifyBatches(op->getRegion(0).front())));
      return fails ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

} // namespace mtplan::passes

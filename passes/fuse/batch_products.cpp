//===- batch_products.cpp - Like products become one batched product ------===//

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_BATCHPRODUCTSPASS
#include "passes/passes.h.inc"

namespace {

// Whether the product can run when `early`, a product before it, does: all that
// it and what is fused with it read is made by then, and no operation between
// the two adds to a sum that it adds to.
bool mayRunAt(ir::EinsumOp early, ir::EinsumOp late) {
  const SmallVector<Operation *> kernel = kernelOf(late);
  return llvm::all_of(kernel, [&](Operation *op) {
    return !isAddedToBetween(early, op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             Operation *maker = operand.getDefiningOp();
             return !maker || maker->getBlock() != early->getBlock() ||
                    llvm::isa<ir::ParameterOp>(maker) ||
                    maker->isBeforeInBlock(early) ||
                    llvm::is_contained(kernel, maker);
           });
  });
}

// Marks the products behind `first` that can be one batch with it because all
// of them read one operand at `shared`, 0 or 1.
bool batch(ir::EinsumOp first, unsigned shared, int64_t number) {
  SmallVector<ir::EinsumOp> members{first};
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode())
    if (auto product = llvm::dyn_cast<ir::EinsumOp>(op);
        product && ir::batchOf(product) < 0 &&
        product->getOperand(shared) == first->getOperand(shared) &&
        llvm::none_of(members,
                      [&](ir::EinsumOp member) {
                        return member->getOperand(1 - shared) ==
                               product->getOperand(1 - shared);
                      }) &&
        areAlike(first, product) && mayRunAt(first, product))
      members.push_back(product);
  if (members.size() < 2)
    return false;
  Builder builder(first.getContext());
  for (ir::EinsumOp member : members)
    member->setAttr(ir::kBatchAttrName, builder.getI64IntegerAttr(number));
  return true;
}

struct BatchProducts : impl::BatchProductsPassBase<BatchProducts> {
  void runOnOperation() override {
    getOperation().walk([](ir::EinsumOp op) {
      if (op->getParentOfType<ir::SegmentOp>())
        op->removeAttr(ir::kBatchAttrName);
    });
    getOperation().walk([](Operation *op) {
      if (!llvm::isa<ir::SegmentOp, ir::BackwardOp>(op))
        return;
      int64_t number = 0;
      for (auto product : op->getRegion(0).front().getOps<ir::EinsumOp>())
        if (ir::batchOf(product) < 0 && mayBeBatched(product) &&
            (batch(product, 0, number) || batch(product, 1, number)))
          ++number;
    });
  }
};

} // namespace

} // namespace mtplan::passes

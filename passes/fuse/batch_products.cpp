//===- batch_products.cpp - Batches products of equal shapes --------------===//

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_BATCHPRODUCTSPASS
#include "passes/passes.h.inc"

namespace {

// Returns whether the kernel of `late` can run at the position of `early`, an
// earlier product. Every operand from outside the kernel must exist at this
// position or be a parameter. No operation between the two may add to an
// accumulator of the kernel.
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

// Marks `first` and all later products that can form a batch with `first`.
// Returns whether there are such products. The products share the operand with
// index `shared`, 0 or 1.
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
        differOnlyInTensors(first, product) && mayRunAt(first, product))
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

//===- separate_carried.cpp - Copies yielded values that are shared -------===//

#include "mlir/IR/Builders.h"

#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_SEPARATECARRIEDPASS
#include "passes/passes.h.inc"

bool isSeparate(OpOperand &carried) {
  Operation *yield = carried.getOwner();
  Block *block = yield->getBlock();
  Value value = carried.get();
  for (OpOperand &other : yield->getOpOperands())
    if (other.getOperandNumber() < carried.getOperandNumber() &&
        other.get() == value)
      return false;
  auto argument = llvm::dyn_cast<BlockArgument>(value);
  const bool stays = argument && argument.getOwner() == block &&
                     argument.getArgNumber() == carried.getOperandNumber();
  const bool isMadeHere = value.getDefiningOp() &&
                          value.getParentBlock() == block &&
                          !value.getDefiningOp<ir::ParameterOp>();
  return stays || isMadeHere;
}

namespace {

// Returns the operation before which copies are inserted: the mtp.backward if
// there is one, because it must stay right before the yield, else the yield.
Operation *placeOfCopies(ir::YieldOp yield) {
  Operation *last = yield->getPrevNode();
  return llvm::isa_and_nonnull<ir::BackwardOp>(last) ? last : yield;
}

void separate(ir::YieldOp yield, StringRef segment) {
  SmallVector<OpOperand *> shared;
  for (OpOperand &carried : yield->getOpOperands())
    if (!isSeparate(carried))
      shared.push_back(&carried);
  for (OpOperand *carried : shared) {
    OpBuilder builder(placeOfCopies(yield));
    auto copy = builder.create<ir::ScaleOp>(
        yield.getLoc(), carried->get().getType(),
        builder.getStringAttr(segment + ".handed_on." +
                              Twine(carried->getOperandNumber())),
        carried->get(), builder.getF64FloatAttr(1.0));
    carried->set(copy->getResult(0));
  }
}

struct SeparateCarried : impl::SeparateCarriedPassBase<SeparateCarried> {
  void runOnOperation() override {
    for (auto segment : getOperation().getOps<ir::SegmentOp>()) {
      separate(segment.getYield(), segment.getSymName());
      if (ir::BackwardOp backward = segment.getBackward())
        separate(backward.getYield(), segment.getSymName());
    }
  }
};

} // namespace

} // namespace mtplan::passes

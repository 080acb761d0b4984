//===- fuse_bias_gradients.cpp - Fuses bias into weight gradients ---------===//

#include "ir/decisions.h"
#include "passes/fuse/fusible.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_FUSEBIASGRADIENTSPASS
#include "passes/passes.h.inc"

namespace {

ir::SumOp biasGradientBehind(ir::EinsumOp product) {
  for (Operation *op = product->getNextNode(); op; op = op->getNextNode())
    if (auto sum = llvm::dyn_cast<ir::SumOp>(op);
        sum && !ir::isFused(sum) && sharesKernel(product, sum))
      return sum;
  return {};
}

void fuse(ir::EinsumOp product) {
  ir::SumOp sum = biasGradientBehind(product);
  if (!sum)
    return;
  Operation *last = ir::epilogueOf(product);
  if (!last)
    last = product;
  Operation *epilogue = ir::epilogueOf(sum);
  if (epilogue && isAddedToBetween(last, epilogue))
    return;
  sum->moveAfter(last);
  if (epilogue)
    epilogue->moveAfter(sum);
  sum->setAttr(ir::kFusedAttrName,
               StringAttr::get(sum.getContext(), ir::kBiasGradient));
}

struct FuseBiasGradients : impl::FuseBiasGradientsPassBase<FuseBiasGradients> {
  void runOnOperation() override {
    SmallVector<ir::EinsumOp> products;
    getOperation().walk([&](ir::EinsumOp op) { products.push_back(op); });
    llvm::for_each(products, fuse);
  }
};

} // namespace

} // namespace mtplan::passes

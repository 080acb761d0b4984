//===- loss_gradients.cpp - Gradients of the loss -------------------------===//
//
// The cross entropy is differentiated as a whole. mtp.token_loss finds the
// three reductions that it reads and builds one gradient, that of the logits.
// The reductions add nothing, because this gradient includes their share.
//
//===----------------------------------------------------------------------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

static constexpr llvm::StringLiteral kOnlyThroughLoss =
    "is differentiated only as a part of mtp.token_loss";

LogicalResult VocabMaxOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kOnlyThroughLoss);
}

LogicalResult VocabSumExpOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kOnlyThroughLoss);
}

LogicalResult VocabPickOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kOnlyThroughLoss);
}

LogicalResult TokenLossOp::buildGradient(GradientBuilder &gradients) {
  if (failed(checkLossReaders(*this, getResult())))
    return failure();
  auto maximum = getMaximum().getDefiningOp<VocabMaxOp>();
  auto sumExp = getSumExp().getDefiningOp<VocabSumExpOp>();
  auto picked = getPicked().getDefiningOp<VocabPickOp>();
  if (!maximum || !sumExp || !picked)
    return emitOpError("has no gradient unless it reads mtp.vocab_max, "
                       "mtp.vocab_sum_exp and mtp.vocab_pick");
  Value logits = picked.getLogits();
  if (maximum.getLogits() != logits || sumExp.getLogits() != logits ||
      sumExp.getMaximum() != getMaximum() ||
      picked.getTargets() != getTargets())
    return emitOpError("has no gradient: its maximum, sum_exp and picked are "
                       "not of the same logits and targets");
  if (maximum.getClasses() != sumExp.getClasses())
    return emitOpError("has no gradient: its maximum is over ")
           << maximum.getClasses() << " classes, its sum_exp over "
           << sumExp.getClasses();
  if (!GradientBuilder::wants(logits))
    return success();
  auto dlogits = gradients.builder.create<CrossEntropyGradOp>(
      getLoc(), logits.getType(), getLabel().str() + ".grad", logits,
      getMaximum(), getSumExp(), getTargets(), getCount(), sumExp.getClasses());
  gradients.add(logits, dlogits.getResult(), getLabel());
  return success();
}

LogicalResult CrossEntropyGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

} // namespace mtplan::ir

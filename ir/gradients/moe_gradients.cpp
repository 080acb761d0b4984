//===- moe_gradients.cpp - Gradients of mixtures of experts ---------------===//
//
// The assignment of tokens to experts is piecewise constant, so that slots pass
// no gradient on. The router learns through the gates and through the balance
// loss.
//
//===----------------------------------------------------------------------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

LogicalResult MoeGateOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getLogits()))
    return success();
  auto dlogits = gradients.builder.create<MoeGateGradOp>(
      getLoc(), getLogits().getType(), getLabel().str() + ".grad", getLogits(),
      dy, getTopK(), getNormalise());
  gradients.add(getLogits(), dlogits.getResult(), getLabel());
  return success();
}

LogicalResult MoeGateGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult MoeSlotsOp::buildGradient(GradientBuilder &) { return success(); }

LogicalResult MoeDispatchOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<MoeDispatchGradOp>(
      getLoc(), getInput().getType(), getLabel().str() + ".grad", getSlots(),
      dy);
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

LogicalResult MoeDispatchGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult MoeCombineOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<MoeCombineGradOp>(
      getLoc(), getInput().getType(), getGates().getType(),
      getLabel().str() + ".grad", getInput(), getGates(), getSlots(), dy);
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getGates(), terms.getGatesGradient(), getLabel());
  return success();
}

LogicalResult MoeCombineGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult BalanceLossOp::buildGradient(GradientBuilder &gradients) {
  if (failed(checkLossReaders(*this, getResult())))
    return failure();
  if (!GradientBuilder::wants(getLogits()))
    return success();
  auto dlogits = gradients.builder.create<BalanceLossGradOp>(
      getLoc(), getLogits().getType(), getLabel().str() + ".grad", getLogits(),
      getCount(), getTopK(), getCoefficient());
  gradients.add(getLogits(), dlogits.getResult(), getLabel());
  return success();
}

LogicalResult BalanceLossGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

} // namespace mtplan::ir

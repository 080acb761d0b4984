//===- position_gradients.cpp - Gradients of the first position -----------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

LogicalResult PutFirstOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<PutFirstGradOp>(
      getLoc(), getInput().getType(), getVector().getType(),
      getLabel().str() + ".grad", dy);
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getVector(), terms.getVectorGradient(), getLabel());
  return success();
}

LogicalResult PutFirstGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult TakeFirstOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<TakeFirstGradOp>(
      getLoc(), getInput().getType(), getLabel().str() + ".dx", dy);
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

LogicalResult TakeFirstGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

// A constant has no gradient.
LogicalResult ZerosOp::buildGradient(GradientBuilder &) { return success(); }

} // namespace mtplan::ir

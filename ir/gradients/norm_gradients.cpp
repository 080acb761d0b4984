//===- norm_gradients.cpp - Gradients of norms and softmax ----------------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

LogicalResult LayerNormOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<LayerNormGradOp>(
      getLoc(), getInput().getType(), getGamma().getType(), getBeta().getType(),
      getLabel().str() + ".grad", getInput(), getGamma(), dy, getEpsilon());
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getGamma(), terms.getGammaGradient(), getLabel());
  gradients.add(getBeta(), terms.getBetaGradient(), getLabel());
  return success();
}

LogicalResult LayerNormGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult RmsNormOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<RmsNormGradOp>(
      getLoc(), getInput().getType(), getGamma().getType(),
      getLabel().str() + ".grad", getInput(), getGamma(), dy, getEpsilon());
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getGamma(), terms.getGammaGradient(), getLabel());
  return success();
}

LogicalResult RmsNormGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult SoftmaxOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<SoftmaxGradOp>(
      getLoc(), getLabel().str() + ".grad", getResult(), dy);
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

LogicalResult SoftmaxGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

} // namespace mtplan::ir

//===- attention_gradients.cpp - Gradients of attention and RoPE ----------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

LogicalResult AttentionOp::buildGradient(GradientBuilder &gradients) {
  if (gradients.gradientOf(getLse()))
    return emitOpError("gets a gradient for its lse, which has none: it is "
                       "there for mtp.attention_grad alone");
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<AttentionGradOp>(
      getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(),
      getBias() ? getBias().getType() : Type(),
      gradients.builder.getStringAttr(getLabel() + ".grad"), getQuery(),
      getKey(), getValue(), getResult(), getLse(), dy, getBias(),
      getHeadDimAttr(), getCausalAttr(), getScaleAttr(), getRateAttr(),
      getMaskAttr(), getMaxDistanceAttr(), getSoftcapAttr());
  gradients.add(getQuery(), terms.getQueryGradient(), getLabel());
  gradients.add(getKey(), terms.getKeyGradient(), getLabel());
  gradients.add(getValue(), terms.getValueGradient(), getLabel());
  if (getBias())
    gradients.add(getBias(), terms.getBiasGradient(), getLabel());
  return success();
}

LogicalResult AttentionGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

// The transpose of a rotation is the inverse rotation.
LogicalResult RopeOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<RopeOp>(
      getLoc(), getLabel().str() + ".dx", dy, getHeadDim(), getRotaryDim(),
      getTheta(), getInterleaved(), !getInverse());
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

} // namespace mtplan::ir

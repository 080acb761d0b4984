//===- pointwise_gradients.cpp - Gradients, element by element ------------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// Linear operators
//===----------------------------------------------------------------------===//

LogicalResult AddOp::buildGradient(GradientBuilder &gradients) {
  if (Value dy = gradients.gradientOf(getResult())) {
    gradients.add(getLhs(), dy, getLabel());
    gradients.add(getRhs(), dy, getLabel());
  }
  return success();
}

LogicalResult MulOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  std::string label = getLabel().str();
  auto product = [&](Value operand, Value other, StringRef suffix) {
    if (!GradientBuilder::wants(operand))
      return;
    auto term = gradients.builder.create<MulOp>(getLoc(), label + suffix.str(),
                                                dy, other);
    gradients.add(operand, term.getResult(), label);
  };
  product(getLhs(), getRhs(), ".dlhs");
  product(getRhs(), getLhs(), ".drhs");
  return success();
}

LogicalResult ScaleOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<ScaleOp>(
      getLoc(), getLabel().str() + ".dx", dy, getFactor());
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

// The mask is drawn by name: the backward operator drops the same elements.
LogicalResult DropoutOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<DropoutOp>(
      getLoc(), getLabel().str() + ".dx", dy, getRate(), getMask());
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

//===----------------------------------------------------------------------===//
// Nonlinearities
//===----------------------------------------------------------------------===//

LogicalResult ActivationOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getInput()))
    return success();
  auto dx = gradients.builder.create<ActivationGradOp>(
      getLoc(), getLabel().str() + ".grad", getKind(), getInput(), dy);
  gradients.add(getInput(), dx.getResult(), getLabel());
  return success();
}

LogicalResult ActivationGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult SwigluOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  Type type = getResult().getType();
  auto terms = gradients.builder.create<SwigluGradOp>(
      getLoc(), type, type, getLabel().str() + ".grad", getGate(), getUp(), dy);
  gradients.add(getGate(), terms.getGateGradient(), getLabel());
  gradients.add(getUp(), terms.getUpGradient(), getLabel());
  return success();
}

LogicalResult SwigluGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

} // namespace mtplan::ir

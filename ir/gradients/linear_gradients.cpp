//===- linear_gradients.cpp - Gradients of products, sums, lookups --------===//

#include "ir/gradients/no_gradient.h"

using namespace mlir;

namespace mtplan::ir {

//===----------------------------------------------------------------------===//
// Einsum: the gradient of an operand is an einsum of the two other tensors
//===----------------------------------------------------------------------===//

LogicalResult EinsumOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto [inputs, output] = getEquation().split("->");
  auto [left, right] = inputs.split(',');
  OpBuilder &builder = gradients.builder;
  std::string label = getLabel().str();
  // The gradients of an activation times a weight have the field's names.
  bool weight = getRhs().getDefiningOp<ParameterOp>() &&
                !getLhs().getDefiningOp<ParameterOp>();
  if (GradientBuilder::wants(getLhs())) {
    std::string equation = (output + "," + right + "->" + left).str();
    auto dlhs = builder.create<EinsumOp>(
        getLoc(), getLhs().getType(), label + (weight ? ".dx" : ".dlhs"),
        equation, dy, getRhs(), Value(), getRow(), getColumn());
    gradients.add(getLhs(), dlhs.getResult(), label);
  }
  if (GradientBuilder::wants(getRhs())) {
    std::string equation = (left + "," + output + "->" + right).str();
    auto drhs = builder.create<EinsumOp>(
        getLoc(), getRhs().getType(), label + (weight ? ".dw" : ".drhs"),
        equation, getLhs(), dy, Value(), getRow(), getColumn());
    gradients.add(getRhs(), drhs.getResult(), label);
  }
  if (getBias() && GradientBuilder::wants(getBias())) {
    auto dbias =
        builder.create<SumOp>(getLoc(), getBias().getType(), label + ".db", dy);
    gradients.add(getBias(), dbias.getResult(), label);
  }
  return success();
}

LogicalResult SumOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients,
                        "there is no operator that broadcasts it back");
}

//===----------------------------------------------------------------------===//
// Lookups: only the table has a gradient
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy || !GradientBuilder::wants(getTable()))
    return success();
  auto dtable = gradients.builder.create<EmbeddingGradOp>(
      getLoc(), getTable().getType(), getLabel().str() + ".dw", getIds(), dy);
  gradients.add(getTable(), dtable.getResult(), getLabel());
  return success();
}

LogicalResult EmbeddingGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

LogicalResult PositionEmbeddingOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  gradients.add(getInput(), dy, getLabel());
  if (!GradientBuilder::wants(getTable()))
    return success();
  auto dtable = gradients.builder.create<PositionEmbeddingGradOp>(
      getLoc(), getTable().getType(), getLabel().str() + ".dw", dy);
  gradients.add(getTable(), dtable.getResult(), getLabel());
  return success();
}

LogicalResult
PositionEmbeddingGradOp::buildGradient(GradientBuilder &gradients) {
  return refuseGradient(*this, gradients, kSecondOrder);
}

} // namespace mtplan::ir

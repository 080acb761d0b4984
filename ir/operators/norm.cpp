//===- norm.cpp - Norms and softmax, which reduce over rows ---------------===//

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

namespace {
/// Holds the dimensions of rows [d0, ..., h], or [d0, ..., (a d)] if each of
/// `a` heads is a row, and of a vector as long as a row. A row is never
/// sharded.
struct RowDims {
  FactorRule rule;
  TensorFactors rows, vector;
};
} // namespace

static RowDims rowDims(Value rows,
                       std::optional<uint64_t> headDim = std::nullopt) {
  RowDims dims;
  dims.rows = addDims(dims.rule, shapeOf(rows).drop_back());
  int64_t width = shapeOf(rows).back();
  DimFactors last;
  if (headDim) {
    auto features = static_cast<int64_t>(*headDim);
    last.push_back(dims.rule.add("a", width / features, FactorRole::head));
    width = features;
  }
  int row = dims.rule.add(headDim ? "d" : "h", width);
  dims.rule.factors[row].divisible = false;
  last.push_back(row);
  dims.rows.push_back(last);
  dims.vector = {{row}};
  return dims;
}

FactorRule LayerNormOp::getFactorRule() {
  RowDims dims = rowDims(getInput(), getHeadDim());
  return dims.rule.connect({dims.rows, dims.vector, dims.vector}, {dims.rows});
}

FactorRule LayerNormGradOp::getFactorRule() {
  RowDims dims = rowDims(getInput(), getHeadDim());
  return dims.rule.connect({dims.rows, dims.vector, dims.rows},
                           {dims.rows, dims.vector, dims.vector}, {{2}});
}

FactorRule RmsNormOp::getFactorRule() {
  RowDims dims = rowDims(getInput(), getHeadDim());
  return dims.rule.connect({dims.rows, dims.vector}, {dims.rows}, {{1}});
}

FactorRule RmsNormGradOp::getFactorRule() {
  RowDims dims = rowDims(getInput(), getHeadDim());
  return dims.rule.connect({dims.rows, dims.vector, dims.rows},
                           {dims.rows, dims.vector}, {{2}});
}

FactorRule SoftmaxOp::getFactorRule() {
  RowDims dims = rowDims(getInput());
  return dims.rule.connect({dims.rows}, {dims.rows});
}

FactorRule SoftmaxGradOp::getFactorRule() {
  RowDims dims = rowDims(getOutput());
  return dims.rule.connect({dims.rows, dims.rows}, {dims.rows}, {{1}});
}

double LayerNormOp::getFlops() { return 8 * elementsOf(getInput()); }
double LayerNormGradOp::getFlops() { return 14 * elementsOf(getInput()); }
double RmsNormOp::getFlops() { return 5 * elementsOf(getInput()); }
double RmsNormGradOp::getFlops() { return 10 * elementsOf(getInput()); }
double SoftmaxOp::getFlops() { return 12 * elementsOf(getInput()); }
double SoftmaxGradOp::getFlops() { return 4 * elementsOf(getOutput()); }

LogicalResult LayerNormOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<LayerNormGradOp>(
      getLoc(), getInput().getType(), getGamma().getType(), getBeta().getType(),
      getLabel().str() + ".grad", getInput(), getGamma(), dy, getEpsilon(),
      getHeadDimAttr());
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getGamma(), terms.getGammaGradient(), getLabel());
  gradients.add(getBeta(), terms.getBetaGradient(), getLabel());
  return success();
}

LogicalResult RmsNormOp::buildGradient(GradientBuilder &gradients) {
  Value dy = gradients.gradientOf(getResult());
  if (!dy)
    return success();
  auto terms = gradients.builder.create<RmsNormGradOp>(
      getLoc(), getInput().getType(), getGamma().getType(),
      getLabel().str() + ".grad", getInput(), getGamma(), dy, getEpsilon(),
      getHeadDimAttr());
  gradients.add(getInput(), terms.getInputGradient(), getLabel());
  gradients.add(getGamma(), terms.getGammaGradient(), getLabel());
  return success();
}

LogicalResult SoftmaxOp::buildGradient(GradientBuilder &gradients) {
  return addGradientOf(getInput(), *this, gradients, ".grad",
                       [&](StringRef label, Value dy) {
                         return gradients.builder.create<SoftmaxGradOp>(
                             getLoc(), label, getResult(), dy);
                       });
}

static LogicalResult checkVector(Operation *op, StringRef name, Value vector,
                                 Value input, std::optional<uint64_t> headDim) {
  if (failed(expectAtLeastOneDim(op, "input", input)))
    return failure();
  if (!headDim)
    return expectVectorOf(op, name, vector, input);
  auto width = static_cast<int64_t>(*headDim);
  return failure(
      failed(expectHeads(op, "input", shapeOf(input).back(), width)) ||
      failed(expectShape(op, name, vector, {width})));
}

LogicalResult LayerNormOp::verify() {
  return failure(
      failed(
          checkVector(*this, "gamma", getGamma(), getInput(), getHeadDim())) ||
      failed(checkVector(*this, "beta", getBeta(), getInput(), getHeadDim())) ||
      failed(expectType(*this, "result", getResult(), getInput().getType())));
}

LogicalResult LayerNormGradOp::verify() {
  Type input = getInput().getType(), gamma = getGamma().getType();
  return failure(
      failed(
          checkVector(*this, "gamma", getGamma(), getInput(), getHeadDim())) ||
      failed(expectType(*this, "gradient", getGradient(), input)) ||
      failed(expectType(*this, "input gradient", getInputGradient(), input)) ||
      failed(expectType(*this, "gamma gradient", getGammaGradient(), gamma)) ||
      failed(expectType(*this, "beta gradient", getBetaGradient(), gamma)));
}

LogicalResult RmsNormOp::verify() {
  return failure(
      failed(
          checkVector(*this, "gamma", getGamma(), getInput(), getHeadDim())) ||
      failed(expectType(*this, "result", getResult(), getInput().getType())));
}

LogicalResult RmsNormGradOp::verify() {
  Type input = getInput().getType(), gamma = getGamma().getType();
  return failure(
      failed(
          checkVector(*this, "gamma", getGamma(), getInput(), getHeadDim())) ||
      failed(expectType(*this, "gradient", getGradient(), input)) ||
      failed(expectType(*this, "input gradient", getInputGradient(), input)) ||
      failed(expectType(*this, "gamma gradient", getGammaGradient(), gamma)));
}

} // namespace mtplan::ir

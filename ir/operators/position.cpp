//===- position.cpp - The first position ----------------------------------===//

#include "ir/operators/definition.h"

using namespace mlir;

namespace mtplan::ir {

namespace {
/// Holds the dimensions of x [b, s, h], its first position [b, h] and one
/// vector [h].
struct FirstDims {
  FactorRule rule;
  TensorFactors all, first, vector;
};
} // namespace

static FirstDims firstDims(Value tensor) {
  FirstDims dims;
  ArrayRef<int64_t> shape = shapeOf(tensor);
  int b = dims.rule.add("b", shape[0]);
  int s = dims.rule.add("s", shape[1]);
  int h = dims.rule.add("h", shape[2]);
  dims.all = {{b}, {s}, {h}};
  dims.first = {{b}, {h}};
  dims.vector = {{h}};
  return dims;
}

FactorRule PutFirstOp::getFactorRule() {
  FirstDims dims = firstDims(getInput());
  return dims.rule.connect({dims.all, dims.vector}, {dims.all}, {{0, 1}});
}

FactorRule PutFirstGradOp::getFactorRule() {
  FirstDims dims = firstDims(getGradient());
  return dims.rule.connect({dims.all}, {dims.all, dims.vector}, {{0}});
}

FactorRule TakeFirstOp::getFactorRule() {
  FirstDims dims = firstDims(getInput());
  return dims.rule.connect({dims.all}, {dims.first}, {{0}});
}

FactorRule TakeFirstGradOp::getFactorRule() {
  FirstDims dims = firstDims(getResult());
  return dims.rule.connect({dims.first}, {dims.all}, {{0}});
}

FactorRule ZerosOp::getFactorRule() { return pointwiseRule(*this, {}); }

double PutFirstOp::getFlops() { return 0.0; }
double PutFirstGradOp::getFlops() {
  return elementsOf(getGradient()) /
         static_cast<double>(shapeOf(getGradient())[1]);
}
double TakeFirstOp::getFlops() { return 0.0; }
double TakeFirstGradOp::getFlops() { return 0.0; }
double ZerosOp::getFlops() { return 0.0; }

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

LogicalResult TakeFirstOp::buildGradient(GradientBuilder &gradients) {
  return addGradientOf(getInput(), *this, gradients, ".dx",
                       [&](StringRef label, Value dy) {
                         return gradients.builder.create<TakeFirstGradOp>(
                             getLoc(), getInput().getType(), label, dy);
                       });
}

// A constant has no gradient.
LogicalResult ZerosOp::buildGradient(GradientBuilder &) { return success(); }

static LogicalResult checkFirst(Operation *op, StringRef allName, Value all,
                                StringRef firstName, Value first) {
  if (failed(expectRank(op, allName, all, 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(all);
  return expectShape(op, firstName, first, {shape[0], shape[2]});
}

LogicalResult PutFirstOp::verify() {
  return failure(
      failed(expectRank(*this, "input", getInput(), 3)) ||
      failed(expectType(*this, "result", getResult(), getInput().getType())) ||
      failed(expectVectorOf(*this, "vector", getVector(), getInput())));
}

LogicalResult PutFirstGradOp::verify() {
  return failure(failed(expectRank(*this, "gradient", getGradient(), 3)) ||
                 failed(expectType(*this, "input gradient", getInputGradient(),
                                   getGradient().getType())) ||
                 failed(expectVectorOf(*this, "vector gradient",
                                       getVectorGradient(), getGradient())));
}

LogicalResult TakeFirstOp::verify() {
  return checkFirst(*this, "input", getInput(), "result", getResult());
}

LogicalResult TakeFirstGradOp::verify() {
  return checkFirst(*this, "result", getResult(), "gradient", getGradient());
}

} // namespace mtplan::ir

//===- position_rules.cpp - Factors and flops of the first position -------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

namespace {
/// The dimensions of x [b, s, h], its first position [b, h] and one vector [h].
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
  dims.rule.operands = {dims.all, dims.vector};
  dims.rule.results = {dims.all};
  dims.rule.linearGroups = {{0, 1}};
  return dims.rule;
}

FactorRule PutFirstGradOp::getFactorRule() {
  FirstDims dims = firstDims(getGradient());
  dims.rule.operands = {dims.all};
  dims.rule.results = {dims.all, dims.vector};
  dims.rule.linearGroups = {{0}};
  return dims.rule;
}

FactorRule TakeFirstOp::getFactorRule() {
  FirstDims dims = firstDims(getInput());
  dims.rule.operands = {dims.all};
  dims.rule.results = {dims.first};
  dims.rule.linearGroups = {{0}};
  return dims.rule;
}

FactorRule TakeFirstGradOp::getFactorRule() {
  FirstDims dims = firstDims(getResult());
  dims.rule.operands = {dims.first};
  dims.rule.results = {dims.all};
  dims.rule.linearGroups = {{0}};
  return dims.rule;
}

FactorRule ZerosOp::getFactorRule() {
  FactorRule rule;
  rule.results.push_back(addDims(rule, shapeOf(getResult())));
  return rule;
}

double PutFirstOp::getFlops() { return 0.0; }
double PutFirstGradOp::getFlops() {
  return elementsOf(getGradient()) /
         static_cast<double>(shapeOf(getGradient())[1]);
}
double TakeFirstOp::getFlops() { return 0.0; }
double TakeFirstGradOp::getFlops() { return 0.0; }
double ZerosOp::getFlops() { return 0.0; }

} // namespace mtplan::ir

//===- norm_rules.cpp - Factors and flops of norms and softmax ------------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

// Returns the rule of rows [d0, ..., h] and vectors along h, which is never
// split.
static FactorRule rowRule(Value input, TensorFactors &rows,
                          TensorFactors &vector) {
  FactorRule rule;
  rows = addDims(rule, shapeOf(input).drop_back());
  int h = rule.add("h", shapeOf(input).back());
  rule.factors[h].divisible = false;
  rows.push_back({h});
  vector = {{h}};
  return rule;
}

FactorRule LayerNormOp::getFactorRule() {
  TensorFactors rows, vector;
  FactorRule rule = rowRule(getInput(), rows, vector);
  rule.operands = {rows, vector, vector};
  rule.results = {rows};
  return rule;
}

FactorRule LayerNormGradOp::getFactorRule() {
  TensorFactors rows, vector;
  FactorRule rule = rowRule(getInput(), rows, vector);
  rule.operands = {rows, vector, rows};
  rule.results = {rows, vector, vector};
  rule.linearGroups = {{2}};
  return rule;
}

FactorRule RmsNormOp::getFactorRule() {
  TensorFactors rows, vector;
  FactorRule rule = rowRule(getInput(), rows, vector);
  rule.operands = {rows, vector};
  rule.results = {rows};
  rule.linearGroups = {{1}};
  return rule;
}

FactorRule RmsNormGradOp::getFactorRule() {
  TensorFactors rows, vector;
  FactorRule rule = rowRule(getInput(), rows, vector);
  rule.operands = {rows, vector, rows};
  rule.results = {rows, vector};
  rule.linearGroups = {{2}};
  return rule;
}

FactorRule SoftmaxOp::getFactorRule() {
  TensorFactors rows, vector;
  FactorRule rule = rowRule(getInput(), rows, vector);
  rule.operands = {rows};
  rule.results = {rows};
  return rule;
}

FactorRule SoftmaxGradOp::getFactorRule() {
  TensorFactors rows, vector;
  FactorRule rule = rowRule(getOutput(), rows, vector);
  rule.operands = {rows, rows};
  rule.results = {rows};
  rule.linearGroups = {{1}};
  return rule;
}

double LayerNormOp::getFlops() { return 8 * elementsOf(getInput()); }
double LayerNormGradOp::getFlops() { return 14 * elementsOf(getInput()); }
double RmsNormOp::getFlops() { return 5 * elementsOf(getInput()); }
double RmsNormGradOp::getFlops() { return 10 * elementsOf(getInput()); }
double SoftmaxOp::getFlops() { return 12 * elementsOf(getInput()); }
double SoftmaxGradOp::getFlops() { return 4 * elementsOf(getOutput()); }

} // namespace mtplan::ir

//===- loss_rules.cpp - Factors and flops of the cross entropy ------------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

// Returns the rule of logits [d0, ..., v] and one number per token [d0, ...].
static FactorRule tokenRule(Value logits, TensorFactors &classes,
                            TensorFactors &tokens) {
  FactorRule rule;
  tokens = addDims(rule, shapeOf(logits).drop_back());
  int v = rule.add("v", shapeOf(logits).back(), FactorRole::vocab);
  classes = tokens;
  classes.push_back({v});
  return rule;
}

FactorRule VocabMaxOp::getFactorRule() {
  TensorFactors classes, tokens;
  FactorRule rule = tokenRule(getLogits(), classes, tokens);
  rule.factors[rule.find("v")].max = true;
  rule.operands = {classes};
  rule.results = {tokens};
  return rule;
}

FactorRule VocabSumExpOp::getFactorRule() {
  TensorFactors classes, tokens;
  FactorRule rule = tokenRule(getLogits(), classes, tokens);
  rule.operands = {classes, tokens};
  rule.results = {tokens};
  return rule;
}

FactorRule VocabPickOp::getFactorRule() {
  TensorFactors classes, tokens;
  FactorRule rule = tokenRule(getLogits(), classes, tokens);
  rule.lookedUp = {0};
  rule.operands = {classes, tokens};
  rule.results = {tokens};
  return rule;
}

FactorRule TokenLossOp::getFactorRule() {
  FactorRule rule;
  TensorFactors tokens = addDims(rule, shapeOf(getMaximum()));
  rule.operands = {tokens, tokens, tokens, tokens, {}};
  rule.results = {{}};
  return rule;
}

FactorRule CrossEntropyGradOp::getFactorRule() {
  TensorFactors classes, tokens;
  FactorRule rule = tokenRule(getLogits(), classes, tokens);
  rule.operands = {classes, tokens, tokens, tokens, {}};
  rule.results = {classes};
  return rule;
}

double VocabMaxOp::getFlops() { return elementsOf(getLogits()); }
double VocabSumExpOp::getFlops() { return 10 * elementsOf(getLogits()); }
double VocabPickOp::getFlops() { return 0.0; }
double TokenLossOp::getFlops() { return 12 * elementsOf(getMaximum()); }
double CrossEntropyGradOp::getFlops() { return 10 * elementsOf(getLogits()); }

} // namespace mtplan::ir

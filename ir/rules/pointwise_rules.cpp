//===- pointwise_rules.cpp - Factors and work, element by element ---------===//

#include "ir/mtp.h"
#include "ir/rules/shape.h"

using namespace mlir;

namespace mtplan::ir {

// Every operand and result runs along the same dimensions.
static FactorRule
pointwiseRule(Operation *op,
              llvm::SmallVector<llvm::SmallVector<int, 2>, 2> linearGroups) {
  FactorRule rule;
  TensorFactors dims = addDims(rule, shapeOf(op->getResult(0)));
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.assign(op->getNumResults(), dims);
  rule.linearGroups = std::move(linearGroups);
  return rule;
}

FactorRule AddOp::getFactorRule() { return pointwiseRule(*this, {{0, 1}}); }
FactorRule MulOp::getFactorRule() { return pointwiseRule(*this, {{0}, {1}}); }
FactorRule ScaleOp::getFactorRule() { return pointwiseRule(*this, {{0}}); }
FactorRule DropoutOp::getFactorRule() { return pointwiseRule(*this, {{0}}); }
FactorRule ActivationOp::getFactorRule() { return pointwiseRule(*this, {}); }
FactorRule ActivationGradOp::getFactorRule() {
  return pointwiseRule(*this, {{1}});
}
FactorRule SwigluOp::getFactorRule() { return pointwiseRule(*this, {{1}}); }
FactorRule SwigluGradOp::getFactorRule() { return pointwiseRule(*this, {{2}}); }

// Work counts one per element and arithmetic step; transcendentals count eight,
// the order of a polynomial that gives single precision.
double AddOp::getFlops() { return elementsOf(getResult()); }
double MulOp::getFlops() { return elementsOf(getResult()); }
double ScaleOp::getFlops() { return elementsOf(getResult()); }
double DropoutOp::getFlops() { return 2 * elementsOf(getResult()); }
double ActivationOp::getFlops() { return 8 * elementsOf(getResult()); }
double ActivationGradOp::getFlops() { return 12 * elementsOf(getResult()); }
double SwigluOp::getFlops() { return 10 * elementsOf(getResult()); }
double SwigluGradOp::getFlops() { return 16 * elementsOf(getGateGradient()); }

} // namespace mtplan::ir

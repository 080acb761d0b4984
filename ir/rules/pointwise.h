//===- pointwise.h - Factors and gradients, element by element --*- C++ -*-===//
//
// What the definitions of pointwise_ops.td call: operators that go element by
// element say their rule and their gradient there.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_RULES_POINTWISE_H
#define MTPLAN_IR_RULES_POINTWISE_H

#include "ir/gradients/no_gradient.h"
#include "ir/rules/shape.h"

namespace mtplan::ir {

/// Returns the rule of an operator whose operands and results all run along the
/// same dimensions.
inline FactorRule
pointwiseRule(mlir::Operation *op,
              llvm::SmallVector<llvm::SmallVector<int, 2>, 2> linearGroups) {
  FactorRule rule;
  TensorFactors dims = addDims(rule, shapeOf(op->getResult(0)));
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.assign(op->getNumResults(), dims);
  rule.linearGroups = std::move(linearGroups);
  return rule;
}

/// Adds the gradient of a unary operator's input. `make` builds the operator
/// that computes it from the gradient of the result.
template <typename Op, typename Make>
llvm::LogicalResult addInputGradient(Op op, GradientBuilder &gradients,
                                     llvm::StringRef suffix, Make &&make) {
  mlir::Value above = gradients.gradientOf(op.getResult());
  if (above && GradientBuilder::wants(op.getInput()))
    gradients.add(op.getInput(),
                  make((op.getLabel() + suffix).str(), above).getResult(),
                  op.getLabel());
  return llvm::success();
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_RULES_POINTWISE_H

//===- definition.h - Helpers for the definitions of operators --*- C++ -*-===//
//
// Each family of operators has a source file in this folder with its verifiers
// and, if it computes, its factor rules and gradients. Pointwise operators
// define their rules and gradients in pointwise_ops.td, which calls these
// functions, too.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_OPERATORS_DEFINITION_H
#define MTPLAN_IR_OPERATORS_DEFINITION_H

#include <cstdint>
#include <string>

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/Twine.h"

#include "ir/mtp.h"

namespace mtplan::ir {

using llvm::ArrayRef, llvm::LogicalResult, llvm::StringRef;
using mlir::Operation, mlir::RankedTensorType, mlir::Type, mlir::Value;

inline RankedTensorType tensorOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

inline double elementsOf(Value value) {
  double product = 1.0;
  for (std::int64_t size : shapeOf(value))
    product *= static_cast<double>(size);
  return product;
}

/// Adds one data factor per dimension, called d0, d1, ..., and returns the
/// factors of a tensor of this shape.
inline TensorFactors addDims(FactorRule &rule, ArrayRef<std::int64_t> shape) {
  TensorFactors dims;
  for (auto [i, size] : llvm::enumerate(shape))
    dims.push_back({rule.add(("d" + llvm::Twine(i)).str(), size)});
  return dims;
}

/// Returns the rule of an operator whose operands and results all have the same
/// dimensions.
inline FactorRule pointwiseRule(Operation *op,
                                FactorRule::LinearGroups linearGroups) {
  FactorRule rule;
  TensorFactors dims = addDims(rule, shapeOf(op->getResult(0)));
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.assign(op->getNumResults(), dims);
  rule.linearGroups = std::move(linearGroups);
  return rule;
}

//===----------------------------------------------------------------------===//
// Gradients
//
// Differentiation calls buildGradient() of every operator. An operator that
// cannot be differentiated fails only if one of its results has a gradient.
//===----------------------------------------------------------------------===//

inline constexpr llvm::StringLiteral kSecondOrder =
    "is part of a backward half, which is not differentiated again";

/// Fails if a result of `op` has a gradient; `reason` ends the message.
LogicalResult rejectGradient(Operation *op, const GradientBuilder &gradients,
                             StringRef reason);

/// Checks that only mtp.accumulate reads `result`. The gradient of a loss is
/// assumed to be 1, which is wrong if another operator reads the loss.
LogicalResult checkLossReaders(Operation *loss, Value result);

/// If the only result of `op` has a gradient, adds the gradient of `operand`.
/// `make` builds the operator that computes the gradient. The arguments of
/// `make` are the label of `op` with `suffix`, and the gradient of the result.
template <typename Op, typename Make>
LogicalResult addGradientOf(Value operand, Op op, GradientBuilder &gradients,
                            StringRef suffix, Make &&make) {
  Value above = gradients.gradientOf(op.getResult());
  if (above && GradientBuilder::wants(operand))
    gradients.add(operand,
                  make((op.getLabel() + suffix).str(), above).getResult(),
                  op.getLabel());
  return llvm::success();
}

//===----------------------------------------------------------------------===//
// Verifiers
//
// A verifier checks the constraints of the operator's description in their
// order. Each failed check emits a diagnostic on the operator. The diagnostic
// names the value and both numbers, found and expected. Shapes are only
// compared with each other, so the checks hold for global and local shapes.
//===----------------------------------------------------------------------===//

/// Formats a shape: "[8, 64]".
std::string shapeText(ArrayRef<std::int64_t> shape);

LogicalResult expectRank(Operation *op, StringRef name, Value value,
                         std::int64_t rank);
LogicalResult expectAtLeastOneDim(Operation *op, StringRef name, Value value);
LogicalResult expectShape(Operation *op, StringRef name, Value value,
                          ArrayRef<std::int64_t> shape);
LogicalResult expectType(Operation *op, StringRef name, Value value, Type type);
/// Expects a vector of the size of the last dimension of `rows`.
LogicalResult expectVectorOf(Operation *op, StringRef name, Value value,
                             Value rows);
/// Expects `width` features to be heads of `headDim` features each.
LogicalResult expectHeads(Operation *op, StringRef name, std::int64_t width,
                          std::int64_t headDim);
LogicalResult expectIntegers(Operation *op, StringRef name, Value value);
/// Expects `stage`, the attribute `name`, to be a coordinate of mesh axis "pp".
LogicalResult expectStage(Operation *op, StringRef name, std::int64_t stage);
LogicalResult expectRate(Operation *op, const llvm::APFloat &rate);

} // namespace mtplan::ir

#endif // MTPLAN_IR_OPERATORS_DEFINITION_H

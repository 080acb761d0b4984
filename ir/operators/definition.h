//===- definition.h - What definitions of operators share -------*- C++ -*-===//
//
// Factor rules, gradients and verifiers of one family of operators are in one
// file of this folder. Pointwise operators say their rule and their gradient in
// pointwise_ops.td, which calls these functions.
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

/// Returns the tensor type of `value`.
inline RankedTensorType tensorOf(Value value) {
  return llvm::cast<RankedTensorType>(value.getType());
}

/// Returns the mesh of the module around `op`, or null.
MeshAttr meshOf(Operation *op);

//===----------------------------------------------------------------------===//
// Factor rules and work
//===----------------------------------------------------------------------===//

inline double elementsOf(Value value) {
  double product = 1.0;
  for (std::int64_t size : shapeOf(value))
    product *= static_cast<double>(size);
  return product;
}

/// Adds one data factor per dimension, called d0, d1, ..., and returns the
/// tensor that has all of them.
inline TensorFactors addDims(FactorRule &rule, ArrayRef<std::int64_t> shape) {
  TensorFactors dims;
  for (auto [i, size] : llvm::enumerate(shape))
    dims.push_back({rule.add(("d" + llvm::Twine(i)).str(), size)});
  return dims;
}

/// Returns the rule of an operator whose operands and results all run along the
/// same dimensions.
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
// Differentiation calls every operator, also those that no gradient reaches. An
// operator without a gradient is an error only if one reaches it.
//===----------------------------------------------------------------------===//

inline constexpr llvm::StringLiteral kSecondOrder =
    "is part of a backward half, which is not differentiated again";

/// Fails if a gradient reaches a result of `op`; `reason` ends the message.
LogicalResult refuseGradient(Operation *op, const GradientBuilder &gradients,
                             StringRef reason);

/// The gradient of a loss is 1 because nothing follows it. Fails if an operator
/// reads the loss, which would need another gradient.
LogicalResult checkLossReaders(Operation *loss, Value result);

/// Adds the gradient of one operand of an operator that has one result, unless
/// that result has no gradient. `make` builds the operator that computes it
/// from its label, that of `op` with `suffix`, and the gradient of the result.
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
// order. Each check fails with a diagnostic on the operator that names the
// value and both numbers, found and expected. Shapes are only compared with
// each other, so the checks hold for global and for local shapes.
//===----------------------------------------------------------------------===//

/// Formats a shape: "[8, 64]".
std::string shapeText(ArrayRef<std::int64_t> shape);

LogicalResult expectRank(Operation *op, StringRef name, Value value,
                         std::int64_t rank);
LogicalResult expectAtLeastOneDim(Operation *op, StringRef name, Value value);
LogicalResult expectShape(Operation *op, StringRef name, Value value,
                          ArrayRef<std::int64_t> shape);
LogicalResult expectType(Operation *op, StringRef name, Value value, Type type);
/// Expects one dimension, of the size of the last dimension of `rows`.
LogicalResult expectVectorOf(Operation *op, StringRef name, Value value,
                             Value rows);
LogicalResult expectIntegers(Operation *op, StringRef name, Value value);
/// Expects a coordinate of the mesh's axis of stages; `name` is the attribute
/// that holds it.
LogicalResult expectStage(Operation *op, StringRef name, std::int64_t stage);
/// Expects a dropout rate: at least 0 and below 1.
LogicalResult expectRate(Operation *op, const llvm::APFloat &rate);

} // namespace mtplan::ir

#endif // MTPLAN_IR_OPERATORS_DEFINITION_H

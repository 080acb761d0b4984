//===- shape.h - Dimensions in factor rules ---------------------*- C++ -*-===//

#ifndef MTPLAN_IR_RULES_SHAPE_H
#define MTPLAN_IR_RULES_SHAPE_H

#include "llvm/ADT/Twine.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include "ir/factor_rule.h"

namespace mtplan::ir {

inline llvm::ArrayRef<std::int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

inline double elementsOf(mlir::Value value) {
  double product = 1.0;
  for (std::int64_t size : shapeOf(value))
    product *= static_cast<double>(size);
  return product;
}

/// Adds one data factor per dimension, called d0, d1, ..., and returns the
/// tensor that has all of them.
inline TensorFactors addDims(FactorRule &rule,
                             llvm::ArrayRef<std::int64_t> shape) {
  TensorFactors dims;
  for (auto [i, size] : llvm::enumerate(shape))
    dims.push_back({rule.add(("d" + llvm::Twine(i)).str(), size)});
  return dims;
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_RULES_SHAPE_H

//===- expect.h - Checks that verifiers share -------------------*- C++ -*-===//
//
// Each check fails with a diagnostic on the operator that names the value and
// both numbers, found and expected. Shapes are only compared with each other,
// so the checks hold for global and for local shapes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_VERIFIERS_EXPECT_H
#define MTPLAN_IR_VERIFIERS_EXPECT_H

#include <cstdint>
#include <string>

#include "llvm/ADT/APFloat.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace mtplan::ir {

/// Formats a shape: "[8, 64]".
std::string shapeText(llvm::ArrayRef<std::int64_t> shape);

/// Returns the tensor type of `value`.
mlir::RankedTensorType tensorOf(mlir::Value value);

llvm::LogicalResult expectRank(mlir::Operation *op, llvm::StringRef name,
                               mlir::Value value, std::int64_t rank);

llvm::LogicalResult expectAtLeastOneDim(mlir::Operation *op,
                                        llvm::StringRef name,
                                        mlir::Value value);

llvm::LogicalResult expectShape(mlir::Operation *op, llvm::StringRef name,
                                mlir::Value value,
                                llvm::ArrayRef<std::int64_t> shape);

llvm::LogicalResult expectType(mlir::Operation *op, llvm::StringRef name,
                               mlir::Value value, mlir::Type type);

/// Expects one dimension, of the size of the last dimension of `rows`.
llvm::LogicalResult expectVectorOf(mlir::Operation *op, llvm::StringRef name,
                                   mlir::Value value, mlir::Value rows);

llvm::LogicalResult expectIntegers(mlir::Operation *op, llvm::StringRef name,
                                   mlir::Value value);

/// Expects a coordinate of the mesh's axis of stages; `name` is the attribute
/// that holds it.
llvm::LogicalResult expectStage(mlir::Operation *op, llvm::StringRef name,
                                std::int64_t stage);

/// Expects a dropout rate: at least 0 and below 1.
llvm::LogicalResult expectRate(mlir::Operation *op, const llvm::APFloat &rate);

} // namespace mtplan::ir

#endif // MTPLAN_IR_VERIFIERS_EXPECT_H

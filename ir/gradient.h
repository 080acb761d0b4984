//===- gradient.h - Builds the backward half --------------------*- C++ -*-===//
//
// Shows reverse-mode differentiation to an operator: it reads the gradients of
// its results and adds gradients of its operands. A value with several users
// gets the sum of their gradients, added in the order in which they are made.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_GRADIENT_H
#define MTPLAN_IR_GRADIENT_H

#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace mtplan::ir {

class GradientBuilder {
public:
  explicit GradientBuilder(mlir::OpBuilder &opBuilder) : builder(opBuilder) {}

  /// Inserts new operators.
  mlir::OpBuilder &builder;

  /// Returns the gradient of `value` so far; null if nothing it feeds has one.
  mlir::Value gradientOf(mlir::Value value) const {
    return gradients.lookup(value);
  }

  /// Returns whether the gradient of `value` is needed: it is a floating-point
  /// tensor and not an `mtp.input`.
  static bool wants(mlir::Value value);

  /// Adds a term to the gradient of `value`. If there is one already, an
  /// `mtp.add` called `label` + ".sum" adds them (".sum2" for the second of one
  /// label). Does nothing unless wants(value).
  void add(mlir::Value value, mlir::Value gradient, llvm::StringRef label);

  /// Sets a known gradient (a block argument).
  void seed(mlir::Value value, mlir::Value gradient) {
    gradients[value] = gradient;
  }

private:
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::StringMap<unsigned> sums; ///< number of sums per label
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_GRADIENT_H

//===- gradient.h - Building the backward half ------------------*- C++ -*-===//
//
// What an operator sees of reverse-mode differentiation: gradients of its
// results come in, gradients of its operands go out. Values used several times
// get the sum of their gradients, added in the order in which they are made.
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

  /// Where new operators go.
  mlir::OpBuilder &builder;

  /// Gradient of `value` so far, or null if nothing it feeds has one.
  mlir::Value gradientOf(mlir::Value value) const {
    return gradients.lookup(value);
  }

  /// True if anybody needs the gradient of `value`: it is a tensor of floats
  /// and not an `mtp.input`.
  static bool wants(mlir::Value value);

  /// Adds a term to the gradient of `value`; with one already there, an
  /// `mtp.add` called `label` + ".sum" joins them (".sum2" for the second of
  /// one label). Ignored unless wants(value).
  void add(mlir::Value value, mlir::Value gradient, llvm::StringRef label);

  /// Starts from a known gradient (a block argument).
  void seed(mlir::Value value, mlir::Value gradient) {
    gradients[value] = gradient;
  }

private:
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::StringMap<unsigned> sums; ///< how many joins each label has made
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_GRADIENT_H

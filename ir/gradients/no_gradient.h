//===- no_gradient.h - Operators without a gradient -------------*- C++ -*-===//
//
// Differentiation calls every operator, also those that no gradient reaches. An
// operator without a gradient is an error only if one reaches it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_GRADIENTS_NO_GRADIENT_H
#define MTPLAN_IR_GRADIENTS_NO_GRADIENT_H

#include "ir/mtp.h"

namespace mtplan::ir {

/// Fails if a gradient reaches a result of `op`; `reason` ends the message.
inline llvm::LogicalResult refuseGradient(mlir::Operation *op,
                                          const GradientBuilder &gradients,
                                          llvm::StringRef reason) {
  for (mlir::OpResult result : op->getResults())
    if (gradients.gradientOf(result))
      return op->emitOpError("gets a gradient for result ")
             << result.getResultNumber() << ", but " << reason;
  return llvm::success();
}

/// The gradient of a loss is 1 because nothing follows it. Fails if an operator
/// reads the loss, which would need another gradient.
inline llvm::LogicalResult checkLossReaders(mlir::Operation *loss,
                                            mlir::Value result) {
  for (mlir::Operation *reader : result.getUsers())
    if (!llvm::isa<AccumulateOp>(reader)) {
      mlir::InFlightDiagnostic diagnostic = loss->emitOpError(
          "may only be accumulated: its gradient is taken to be 1");
      diagnostic.attachNote(reader->getLoc()) << "but it is also read here";
      return diagnostic;
    }
  return llvm::success();
}

inline constexpr llvm::StringLiteral kSecondOrder =
    "is part of a backward half, which is not differentiated again";

} // namespace mtplan::ir

#endif // MTPLAN_IR_GRADIENTS_NO_GRADIENT_H

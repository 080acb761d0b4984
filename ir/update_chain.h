//===- update_chain.h - Where an update turns to weights --------*- C++ -*-===//

#ifndef MTPLAN_IR_UPDATE_CHAIN_H
#define MTPLAN_IR_UPDATE_CHAIN_H

#include "ir/mtp.h"

namespace mtplan::ir {

/// Of an operation of a placed update: which program it is in, of those before
/// the norm or of those behind it. A program is of the same copies of all its
/// parameters, and what it makes of them lies side by side.
inline constexpr llvm::StringLiteral kUpdateProgramAttrName =
    "mtp.update_program";

/// Whose work an operation of an update goes on with; null: it works on
/// gradients.
inline AdamwOp updatedBy(mlir::Operation *op) {
  while (op && !llvm::isa<AdamwOp>(op))
    op = op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return llvm::cast_or_null<AdamwOp>(op);
}

/// Whether an operation of an update is `mtp.adamw` or made of what that
/// updated; those before it work on gradients.
inline bool isUpdated(mlir::Operation *op) { return updatedBy(op) != nullptr; }

} // namespace mtplan::ir

#endif // MTPLAN_IR_UPDATE_CHAIN_H

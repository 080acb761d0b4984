//===- update_chain.h - Where an update turns to weights --------*- C++ -*-===//

#ifndef MTPLAN_IR_UPDATE_CHAIN_H
#define MTPLAN_IR_UPDATE_CHAIN_H

#include "ir/mtp.h"

namespace mtplan::ir {

/// Whether an operation of an update is `mtp.adamw` or made of what that
/// updated; those before it work on gradients.
inline bool isUpdated(mlir::Operation *op) {
  while (op && !llvm::isa<AdamwOp>(op))
    op = op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return op;
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_UPDATE_CHAIN_H

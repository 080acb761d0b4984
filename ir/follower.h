//===- follower.h - Who takes what an operator makes ------------*- C++ -*-===//

#ifndef MTPLAN_IR_FOLLOWER_H
#define MTPLAN_IR_FOLLOWER_H

#include "mlir/IR/Operation.h"

namespace mtplan::ir {

/// The operator that may be done at once with `op`, as it takes its result. Of
/// an einsum: an activation, or the only one to take it, if that is an `add`,
/// an `accumulate` or the gradient of an activation. Of a dropout: the only
/// one, if that is an `add`. Null: none, or not in the block of `op`.
mlir::Operation *followerOf(mlir::Operation *op);

} // namespace mtplan::ir

#endif // MTPLAN_IR_FOLLOWER_H

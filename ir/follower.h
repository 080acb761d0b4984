//===- follower.h - Who takes what an operator makes ------------*- C++ -*-===//

#ifndef MTPLAN_IR_FOLLOWER_H
#define MTPLAN_IR_FOLLOWER_H

#include "mlir/IR/Operation.h"

namespace mtplan::ir {

/// The operator that may be done at once with `op`, as it takes its result. Of
/// an einsum: an activation, or the only one to take it, if that is an `add`,
/// an `accumulate` or the gradient of an activation. Of a dropout, or the first
/// result of the gradient of a norm: the only one, if that is an `add`; of a
/// sum, if that is an `accumulate`. Null: none, or not in the block of `op`.
mlir::Operation *followerOf(mlir::Operation *op);

/// The einsum before `op`, a sum, that takes the same as its second operand: so
/// does a weight's gradient beside a bias's. Null: none, or `op` is no sum.
mlir::Operation *productBeside(mlir::Operation *op);

} // namespace mtplan::ir

#endif // MTPLAN_IR_FOLLOWER_H

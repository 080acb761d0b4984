//===- follower.h - Who takes what an einsum makes --------------*- C++ -*-===//

#ifndef MTPLAN_IR_FOLLOWER_H
#define MTPLAN_IR_FOLLOWER_H

#include "mlir/IR/Operation.h"

namespace mtplan::ir {

/// The operator that may be done at once with an einsum, as it takes the
/// einsum's result: an activation, or the only one to take it, if that is an
/// `add`, an `accumulate` or the gradient of an activation. Null: none, or not
/// in the einsum's block.
mlir::Operation *followerOf(mlir::Operation *einsum);

} // namespace mtplan::ir

#endif // MTPLAN_IR_FOLLOWER_H

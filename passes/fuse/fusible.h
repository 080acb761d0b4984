//===- fusible.h - Which operators one kernel can compute -------*- C++ -*-===//
//
// passes/fuse applies these rules, and passes/layout uses them to tell the
// planner which operators are priced as one kernel.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_FUSE_FUSIBLE_H
#define MTPLAN_PASSES_FUSE_FUSIBLE_H

#include "mlir/IR/Operation.h"

#include "ir/mtp.h"

namespace mtplan::passes {

/// Returns the operator of the same block that a kernel of `producer` can
/// compute as its epilogue, or null. An einsum can compute an activation of its
/// result. If the result has a single use, an einsum can compute an `add`, an
/// `accumulate` or an activation's gradient; a dropout and a norm's gradient
/// can compute an `add`; and a sum can compute an `accumulate`.
mlir::Operation *fusibleConsumerOf(mlir::Operation *producer);

/// Returns whether the kernel of `product`, a weight gradient, can also compute
/// `sum`, a bias gradient. `sum` must read the second operand of the product.
/// Both must have epilogues of the same kind, or neither may have an epilogue.
/// Accumulations must begin their sums in the same micro-batch and layer.
bool sharesKernel(ir::EinsumOp product, ir::SumOp sum);

/// Returns `head` and the operations that are fused with it, in block order.
llvm::SmallVector<mlir::Operation *> kernelOf(mlir::Operation *head);

/// Returns whether a library can compute `product` in a batch: the product has
/// no epilogue, or an epilogue that only adds.
bool mayBeBatched(ir::EinsumOp product);

/// Returns whether two products, and the operations fused with them, differ
/// only in the tensors that they read and write.
bool differOnlyInTensors(ir::EinsumOp one, ir::EinsumOp other);

/// Returns whether `op` may run right after `early`, an earlier operation of
/// the block. The operands of `op` must exist at this point or be parameters.
/// No operation between the two may add to the accumulator that `op` adds to.
bool mayMoveAfter(mlir::Operation *op, mlir::Operation *early);

/// Moves `op` right after `early`. If `op` reads an mtp.parameter that comes
/// after `early`, moves this mtp.parameter right before `early`.
void moveRightAfter(mlir::Operation *op, mlir::Operation *early);

/// Returns whether an operation between `early` and `late` adds to the
/// accumulator that `late` adds to.
bool isAddedToBetween(mlir::Operation *early, mlir::Operation *late);

/// Returns whether an operation before `late`, in the block of `op`, uses a
/// result of `op`.
bool isUsedBefore(mlir::Operation *op, mlir::Operation *late);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_FUSE_FUSIBLE_H

//===- fusible.h - Which operators one kernel can compute -------*- C++ -*-===//
//
// The rules that passes/fuse carries out and passes/layout prices.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_FUSE_FUSIBLE_H
#define MTPLAN_PASSES_FUSE_FUSIBLE_H

#include "mlir/IR/Operation.h"

#include "ir/mtp.h"

namespace mtplan::passes {

/// Returns the operator of the same block that a kernel of `producer` can
/// compute as its epilogue, or null. The result of an einsum goes to an
/// activation or, as its only use, to an `add`, an `accumulate` or the gradient
/// of an activation; the result of a dropout and the first result of a norm's
/// gradient go to an `add`, and that of a sum to an `accumulate`, as their only
/// use.
mlir::Operation *fusibleConsumerOf(mlir::Operation *producer);

/// Whether the kernel of `product`, a weight's gradient, can also compute
/// `sum`, a bias's gradient: both read the same tensor, the product as the
/// second of its two operands, and what is fused into them is alike. Both add
/// to sums that begin in the same run, or neither adds to one.
bool sharesKernel(ir::EinsumOp product, ir::SumOp sum);

/// Returns `head` and the operations that are fused with it, in their order.
llvm::SmallVector<mlir::Operation *> kernelOf(mlir::Operation *head);

/// Whether a library can compute `product` in a batch: it has no epilogue, or
/// one that only adds.
bool mayBeBatched(ir::EinsumOp product);

/// Whether two products, and what is fused with them, differ only in the
/// tensors that they read and write.
bool areAlike(ir::EinsumOp one, ir::EinsumOp other);

/// Whether `op` may run right after `early`, an operation before it in the
/// block: `early` or what is before it makes all that `op` reads, and no
/// operation between the two adds to the sum that `op` adds to.
bool mayMoveBehind(mlir::Operation *op, mlir::Operation *early);

/// Moves `op` right after `early`, and in front of `early` the reads of
/// parameters that `op` needs.
void moveBehind(mlir::Operation *op, mlir::Operation *early);

/// Whether an operation between the two adds to the sum that `late` adds to.
bool isAddedToBetween(mlir::Operation *early, mlir::Operation *late);

/// Whether an operation in front of `late`, in the block of `op`, uses a result
/// of `op`.
bool isUsedBefore(mlir::Operation *op, mlir::Operation *late);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_FUSE_FUSIBLE_H

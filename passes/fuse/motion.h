//===- motion.h - Operations change places in a block -----------*- C++ -*-===//
//
// Values and sums of gradients are all that orders operations of a segment:
// before memory is placed nothing is overwritten.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_FUSE_MOTION_H
#define MTPLAN_PASSES_FUSE_MOTION_H

#include "mlir/IR/Operation.h"

namespace mtplan::passes {

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

#endif // MTPLAN_PASSES_FUSE_MOTION_H

//===- fusible.h - Which operators one kernel can compute -------*- C++ -*-===//
//
// The rules that passes/fuse carries out and passes/layout prices.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_FUSE_FUSIBLE_H
#define MTPLAN_PASSES_FUSE_FUSIBLE_H

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

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_FUSE_FUSIBLE_H

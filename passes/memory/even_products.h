//===- even_products.h - What products may share a launch by ----*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_EVEN_PRODUCTS_H
#define MTPLAN_PASSES_MEMORY_EVEN_PRODUCTS_H

#include <vector>

#include "ir/mtp.h"

namespace mtplan::passes {

/// Returns values of a block that are best side by side in memory: the second
/// operands, or the results, of einsums of one kind that share their first
/// operand, in the order of the einsums. A device may compute such einsums as
/// one batched product if all that they do not share is evenly spaced
/// (runtime/plan/joint_products.h).
std::vector<llvm::SmallVector<mlir::Value>> inRows(mlir::Block &block);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_EVEN_PRODUCTS_H

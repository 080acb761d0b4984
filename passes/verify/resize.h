//===- resize.h - The same step at other sizes ------------------*- C++ -*-===//
//
// Rewrites every type and every attribute that counts elements, class of
// dimensions by class (ir/dim_classes.h). Works on any stage before
// partitioned.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_VERIFY_RESIZE_H
#define MTPLAN_PASSES_VERIFY_RESIZE_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Makes the dimensions that count samples `samples` long: those of one
/// micro-batch, all replicas together.
void resizeBatch(mlir::ModuleOp module, std::int64_t samples);

/// Makes every dimension as small as it can be while every product of axes of
/// the module's mesh that divides it still does, and repeats at most twice.
void shrink(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_VERIFY_RESIZE_H

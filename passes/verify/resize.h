//===- resize.h - Changes the sizes of a step -------------------*- C++ -*-===//
//
// Rewrites every type and every attribute that depends on sizes. Dimensions of
// one class (ir/dim_classes.h) change together. The module must not be
// partitioned yet.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_VERIFY_RESIZE_H
#define MTPLAN_PASSES_VERIFY_RESIZE_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Sets the size of all dimensions that count samples. `samples` is the number
/// of samples in one micro-batch, over all replicas.
void resizeBatch(mlir::ModuleOp module, std::int64_t samples);

/// Shrinks every dimension to a few elements. If a dimension can be sharded,
/// every product of mesh axes that divides the dimension also divides its new
/// size. Limits the layers of a segment to two.
void shrink(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_VERIFY_RESIZE_H

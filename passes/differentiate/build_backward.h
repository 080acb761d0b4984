//===- build_backward.h - The backward half of one segment ------*- C++ -*-===//
//
// Visits a segment's operators in reverse order and builds the gradient of
// each. The backward half reads activations of the forward half directly, and
// passes/schedule decides later which of them are recomputed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_DIFFERENTIATE_BUILD_BACKWARD_H
#define MTPLAN_PASSES_DIFFERENTIATE_BUILD_BACKWARD_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Adds an `mtp.backward` to `segment`, which must have none. A parameter's
/// gradient is accumulated as soon as it is complete, so that its reduction can
/// overlap with the rest. Fails, with a diagnostic, if a yielded value depends
/// on no parameter, or if an argument or parameter gets no gradient.
llvm::LogicalResult buildBackward(ir::SegmentOp segment);

/// Appends an `mtp.update` to `module`, which must have none. Fails, with a
/// diagnostic, if two scalars of one label differ in type.
llvm::LogicalResult buildUpdate(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_DIFFERENTIATE_BUILD_BACKWARD_H

//===- build_backward.h - The backward half of one segment ------*- C++ -*-===//
//
// Walks a segment's operators in reverse and lets each build its own gradient.
// Activations that the backward half reads are captured, not copied: what is
// saved and what is made anew is decided later, and elsewhere.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_DIFFERENTIATE_BUILD_BACKWARD_H
#define MTPLAN_PASSES_DIFFERENTIATE_BUILD_BACKWARD_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Adds the `mtp.backward` of `segment`, which has none. A parameter's gradient
/// is accumulated as soon as its last term is in, so that it can be sent while
/// the rest is computed. Fails, with a diagnostic, if a value that is handed on
/// has nothing to train behind it, or an argument or parameter gets no
/// gradient.
llvm::LogicalResult buildBackward(ir::SegmentOp segment);

/// Appends the `mtp.update` of `module`, which has none. Fails, with a
/// diagnostic, if two scalars of one name differ in type.
llvm::LogicalResult buildUpdate(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_DIFFERENTIATE_BUILD_BACKWARD_H

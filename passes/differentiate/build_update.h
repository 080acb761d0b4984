//===- build_update.h - What happens once per step --------------*- C++ -*-===//
//
// One AdamW per parameter and one report per scalar, in the order in which the
// forward half first names them. A parameter that two segments read (tied
// embeddings) is updated once: both accumulate into one gradient.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_DIFFERENTIATE_BUILD_UPDATE_H
#define MTPLAN_PASSES_DIFFERENTIATE_BUILD_UPDATE_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Appends the `mtp.update` of `module`, which has none. Fails, with a
/// diagnostic, if two scalars of one name differ in type.
llvm::LogicalResult buildUpdate(mlir::ModuleOp module);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_DIFFERENTIATE_BUILD_UPDATE_H

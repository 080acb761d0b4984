//===- element_type.h - Changes the precision of a step ---------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_ELEMENT_TYPE_H
#define MTPLAN_PASSES_MEMORY_ELEMENT_TYPE_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Sets the element type of every floating-point tensor of `module`, which may
/// be at any stage, to `type`.
void setElementType(mlir::ModuleOp module, mlir::FloatType type);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_ELEMENT_TYPE_H

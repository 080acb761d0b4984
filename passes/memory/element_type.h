//===- element_type.h - A step in another precision -------------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_ELEMENT_TYPE_H
#define MTPLAN_PASSES_MEMORY_ELEMENT_TYPE_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Makes every tensor of floats in `module`, whatever its stage, one of `type`.
void setElementType(mlir::ModuleOp module, mlir::FloatType type);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_ELEMENT_TYPE_H

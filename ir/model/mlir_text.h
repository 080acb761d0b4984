//===- mlir_text.h - A model given as textual IR ----------------*- C++ -*-===//

#ifndef MTPLAN_IR_MODEL_MLIR_TEXT_H
#define MTPLAN_IR_MODEL_MLIR_TEXT_H

#include "ir/model/fields.h"
#include "ir/model/load.h"

namespace mtplan::ir {

/// True if `text` starts as a module does and JSON cannot.
bool looksLikeMlir(llvm::StringRef text);

/// Parses a module of forward operators. Adds to `findings`; on errors the
/// result's module is null.
LoadedModel loadMlirText(mlir::MLIRContext &context, llvm::StringRef text,
                         const ShapeOverrides &overrides, Findings &findings);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_MLIR_TEXT_H

//===- mlir_text.h - Reads a model given as textual IR ----------*- C++ -*-===//

#ifndef MTPLAN_IR_MODEL_MLIR_TEXT_H
#define MTPLAN_IR_MODEL_MLIR_TEXT_H

#include "ir/model/fields.h"
#include "ir/model/load.h"

namespace mtplan::ir {

/// Returns whether `text` starts as a module does and JSON cannot.
bool looksLikeMlir(llvm::StringRef text);

/// Parses a module of forward operators. Adds to `findings`; on errors the
/// module of the result is null.
LoadedModel loadMlirText(mlir::MLIRContext &context, llvm::StringRef text,
                         const ShapeOverrides &overrides, Findings &findings);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_MLIR_TEXT_H

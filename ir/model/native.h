//===- native.h - Reads mtplan's own model format ---------------*- C++ -*-===//
//
// docs/model-format.md describes the format. Errors refer to dimensions by the
// names that the file gives them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_NATIVE_H
#define MTPLAN_IR_MODEL_NATIVE_H

#include "ir/model/fields.h"
#include "ir/model/load.h"

namespace mtplan::ir {

inline constexpr std::int64_t kNativeVersion = 1;

/// Builds the model of a parsed file. Adds to `findings`; on errors the module
/// of the result is null.
LoadedModel loadNative(mlir::MLIRContext &context, const JsonValue &root,
                       const ShapeOverrides &overrides, Findings &findings);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_NATIVE_H

//===- module_facts.h - Checks a module of any source -----------*- C++ -*-===//

#ifndef MTPLAN_IR_MODEL_MODULE_FACTS_H
#define MTPLAN_IR_MODEL_MODULE_FACTS_H

#include <cstdint>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "ir/model/fields.h"

namespace mtplan::ir {

/// Returns bf16, f16 or f32; a null type for any other name.
mlir::Type elementTypeOf(mlir::MLIRContext &context, llvm::StringRef name);

/// Runs every operator's verifier, then the module's, and checks that no tensor
/// and no sum of parameters is too large to count. Returns whether all is well;
/// otherwise `findings` has all errors of the first stage that has any.
bool checkModule(mlir::ModuleOp module, Findings &findings);

/// Counts the elements of all parameters, each label once, a `*` once per
/// layer. The module must have passed checkModule.
std::int64_t countParameters(mlir::ModuleOp module);

/// Formats the place of a diagnostic: "file:line:col" or a JSON pointer.
std::string describeLocation(mlir::Location location);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_MODULE_FACTS_H

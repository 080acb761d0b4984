//===- module_facts.h - Checks a module of any source -----------*- C++ -*-===//

#ifndef MTPLAN_IR_MODEL_MODULE_FACTS_H
#define MTPLAN_IR_MODEL_MODULE_FACTS_H

#include <cstdint>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "ir/model/fields.h"

namespace mtplan::ir {

/// Returns the type called bf16, f16 or f32, or a null type for another name.
mlir::Type elementTypeOf(mlir::MLIRContext &context, llvm::StringRef name);

/// Verifies every operator and then the module, and checks that neither a
/// tensor nor all parameters together are too large to count. Returns whether
/// all checks pass. If a check fails, `findings` has all errors of the first
/// check that fails.
bool checkModule(mlir::ModuleOp module, Findings &findings);

/// Returns the number of elements of all parameters. Each label counts once,
/// and a label with `*` once per layer. The module must have passed
/// checkModule().
std::int64_t countParameters(mlir::ModuleOp module);

/// Formats the location of a diagnostic: "file:line:column" or a JSON pointer.
std::string describeLocation(mlir::Location location);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_MODULE_FACTS_H

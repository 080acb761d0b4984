//===- module_facts.h - What holds for a module of any source ---*- C++ -*-===//

#ifndef MTPLAN_IR_MODEL_MODULE_FACTS_H
#define MTPLAN_IR_MODEL_MODULE_FACTS_H

#include <cstdint>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include "ir/model/fields.h"

namespace mtplan::ir {

/// bf16, f16 or f32; a null type for any other name.
mlir::Type elementTypeOf(mlir::MLIRContext &context, llvm::StringRef name);

/// Runs every operator's verifier, then the module's, and checks that no tensor
/// and no sum of parameters is too large to count. True if all is well;
/// otherwise `findings` has all errors of the first stage that has any.
bool checkModule(mlir::ModuleOp module, Findings &findings);

/// Elements of all parameters, each label once, `*` once per copy. Only for a
/// module that passed checkModule.
std::int64_t countParameters(mlir::ModuleOp module);

/// Where a diagnostic points, as "file:line:col" or a JSON pointer.
std::string describeLocation(mlir::Location location);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_MODULE_FACTS_H

//===- load.h - Reads a model file into a module ----------------*- C++ -*-===//
//
// Reads a model in one of three formats, recognised by the file's content and
// name: textual IR, a Hugging Face config.json, or mtplan's own JSON
// (docs/model-format.md). The model becomes a module of forward operators for
// one sample. Later passes differentiate and resize the module.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_LOAD_H
#define MTPLAN_IR_MODEL_LOAD_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mtplan::ir {

struct ShapeOverrides {
  std::optional<std::int64_t> sequence; ///< positions per sample
  std::optional<std::int64_t> layers;   ///< number of repeated layers
  std::string elementType = "bf16";     ///< bf16, f16 or f32
  /// Says whether the user chose `elementType`. If so, textual IR must have
  /// this type.
  bool elementTypeAsked = false;
};

struct LoadedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string name;        ///< shown in reports; never empty
  std::string family;      ///< model_type, "native" or "mlir"
  std::string elementType; ///< type of parameters: bf16, f16 or f32
  std::int64_t sequence = 1;
  std::int64_t layers = 1;
  std::optional<std::int64_t> globalBatch; ///< if the file gives one
  std::int64_t parameters = 0;             ///< elements, including padding
  std::int64_t paddingParameters = 0;      ///< elements that are padding
  std::optional<std::int64_t> hidden, heads, kvHeads, headDim, inner;
  std::optional<std::int64_t> vocabulary, paddedVocabulary;
  std::vector<std::string> notes; ///< assumptions and ignored fields
};

/// Reads a model. On bad input returns nothing and adds the violations found to
/// `errors`, one line each, such as "file: /json/pointer: fault".
std::optional<LoadedModel> loadModel(mlir::MLIRContext &context,
                                     llvm::StringRef text,
                                     llvm::StringRef fileName,
                                     const ShapeOverrides &overrides,
                                     std::vector<std::string> &errors);

struct JsonValue;
struct Findings;

inline constexpr std::int64_t kNativeVersion = 1;

/// Builds the model of a parsed file in mtplan's own JSON format. Adds errors
/// to `findings`; the errors use the file's names of dimensions. On errors the
/// module of the result is null or incomplete.
LoadedModel loadNative(mlir::MLIRContext &context, const JsonValue &root,
                       const ShapeOverrides &overrides, Findings &findings);

/// Returns whether `text` starts like an MLIR module and not like JSON.
bool looksLikeMlir(llvm::StringRef text);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_LOAD_H

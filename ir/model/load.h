//===- load.h - Reads a model file into a module ----------------*- C++ -*-===//
//
// ir/model/ answers: which training step is meant? It reads three notations,
// recognised by their content: textual IR, a Hugging Face config.json, and
// mtplan's own JSON (docs/model-format.md). All become a module of forward
// operators for one sample. Differentiation and resizing come later.
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

/// Changes that the command line makes to a model.
struct ShapeOverrides {
  std::optional<std::int64_t> sequence; ///< positions per sample
  std::optional<std::int64_t> layers;   ///< number of repeated layers
  std::string elementType = "bf16";     ///< bf16, f16 or f32
  /// Whether the user gave a type; textual IR has its own.
  bool elementTypeAsked = false;
};

/// A module, and facts about it for reports.
struct LoadedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string name;        ///< for reports; never empty
  std::string family;      ///< model_type, "native" or "mlir"
  std::string elementType; ///< of parameters: bf16, f16 or f32
  std::int64_t sequence = 1;
  std::int64_t layers = 1;
  std::optional<std::int64_t> globalBatch; ///< if the file gives one
  std::int64_t parameters = 0;             ///< stored, including padding
  std::int64_t paddingParameters = 0;      ///< of these, the padding
  std::optional<std::int64_t> hidden, heads, kvHeads, headDim, inner;
  std::optional<std::int64_t> vocabulary, paddedVocabulary;
  std::vector<std::string> notes; ///< what was ignored or assumed
};

/// Reads a model. Returns none on bad input; `errors` then has every violation,
/// one line each, "file: /json/pointer: what is wrong". The context needs the
/// mtp dialect registered or loaded.
std::optional<LoadedModel> loadModel(mlir::MLIRContext &context,
                                     llvm::StringRef text,
                                     llvm::StringRef fileName,
                                     const ShapeOverrides &overrides,
                                     std::vector<std::string> &errors);

/// Returns whether `text` starts as a module does and JSON cannot.
bool looksLikeMlir(llvm::StringRef text);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_LOAD_H

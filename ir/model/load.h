//===- load.h - From what people have on disk to a module -------*- C++ -*-===//
//
// ir/model/ answers: which training step is meant? Three notations, told apart
// by their content: textual IR, a Hugging Face config.json, and mtplan's own
// JSON (docs/model-format.md). All become a module of forward operators for one
// sample; differentiation and resizing come later.
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

/// What the command line may change about a model.
struct ShapeOverrides {
  std::optional<std::int64_t> sequence; ///< positions per sample
  std::optional<std::int64_t> layers;   ///< copies of the repeated block
  std::string elementType = "bf16";     ///< bf16, f16 or f32
  /// Whether somebody asked for it; textual IR brings its own.
  bool elementTypeAsked = false;
};

/// A module and what a report says about it.
struct LoadedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string name;        ///< for people; never empty
  std::string family;      ///< model_type, "native" or "mlir"
  std::string elementType; ///< of parameters: bf16, f16 or f32
  std::int64_t sequence = 1;
  std::int64_t layers = 1;
  std::optional<std::int64_t> globalBatch; ///< if the file asks for one
  std::int64_t parameters = 0;             ///< stored, padding included
  std::int64_t paddingParameters = 0;      ///< of these, never used
  std::optional<std::int64_t> hidden, heads, kvHeads, headDim, inner;
  std::optional<std::int64_t> vocabulary, paddedVocabulary;
  std::vector<std::string> notes; ///< what was ignored or assumed
};

/// Reads a model. Nothing on bad input: then `errors` has every violation, one
/// line each, "file: /json/pointer: what is wrong". The context needs the mtp
/// dialect registered or loaded.
std::optional<LoadedModel> loadModel(mlir::MLIRContext &context,
                                     llvm::StringRef text,
                                     llvm::StringRef fileName,
                                     const ShapeOverrides &overrides,
                                     std::vector<std::string> &errors);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_LOAD_H

//===- export.h - Exports weights to files of other tools -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_EXPORT_H
#define MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

/// Largest file that Transformers 4 writes, in bytes.
inline constexpr std::int64_t kShardBytes = 5'000'000'000;

struct ExportOptions {
  /// Type of all parameters; none: the types of the original files, or else
  /// those of the source.
  std::optional<ElementType> type;
  /// Source of file names, order, metadata and other tensors; null: the
  /// original files of the weights, if there are any.
  const WeightSource *like = nullptr;
  /// Family whose usual names are used instead of the original ones; "": the
  /// family that fits.
  std::string family;
  /// Number of heads, for llm.c and a model that did not come from there.
  std::optional<std::int64_t> heads;
  /// Largest file, instead of the original's; none: kShardBytes if there is no
  /// original.
  std::optional<std::int64_t> shardBytes;
};

struct Exported {
  std::vector<std::string> files; ///< names
  bool hasConfig = false;         ///< whether config.json is among them
  std::int64_t tensors = 0, bytes = 0;
  /// Tensors of the original that are neither parameters nor stored beside
  /// them.
  std::vector<std::string> leftOut;
};

/// Writes a folder of safetensors for Transformers, with an index if there are
/// several files, and with config.json if it is known. Writes exactly the files
/// that the weights came from, if nothing has changed. The folder appears when
/// it is complete; it must not exist, or be empty. Needs memory for one tensor
/// of the file and one parameter.
/// \throws WeightError if the model does not fit into such files or a parameter
/// is missing; CheckpointError
Exported exportHuggingFace(const WeightSource &source,
                           const std::string &folder,
                           const ExportOptions &options);

/// Writes a model file of llm.c, for GPT-2 with a tied head only. The file
/// appears when it is complete; it must not exist.
/// \throws like exportHuggingFace
Exported exportLlmc(const WeightSource &source, const std::string &file,
                    const ExportOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

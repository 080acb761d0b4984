//===- export.h - Exports weights to files of other tools -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_EXPORT_H
#define MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

/// Limits the files that Transformers 4 writes, in bytes.
inline constexpr std::int64_t kShardBytes = 5'000'000'000;

/// Holds the options of an export. The export reproduces the structure of the
/// original files. It writes files of a new structure if there are no original
/// files, or if `family` or `shardBytes` is given without `like`.
struct ExportOptions {
  /// Names the type of all parameters. Without a type here, they have the types
  /// of the original files or, in files of a new structure, of the source.
  std::optional<ElementType> type;
  /// The export takes names, order, metadata and non-parameter tensors from the
  /// original files of these weights; if null, it takes them from those of the
  /// exported weights, unless the files have a new structure.
  const WeightSource *like = nullptr;
  /// In files of a new structure, tensors have the usual names of this model
  /// family; "" means the first family that fits.
  std::string family;
  /// Counts the attention heads; llm.c's header needs this number, and only
  /// weights from llm.c state it.
  std::optional<std::int64_t> heads;
  /// Limits a file of a new structure, in bytes; the default is kShardBytes.
  /// Without a new structure, tensors are divided among files as in the
  /// original files.
  std::optional<std::int64_t> shardBytes;
};

/// Summarizes an export.
struct Exported {
  std::vector<std::string> files; ///< names of written files
  bool hasConfig = false;         ///< whether config.json is among them
  std::int64_t tensors = 0, bytes = 0;
  /// Lists the tensors of the original files that were not exported.
  std::vector<std::string> leftOut;
};

/// Writes a folder of safetensors for Transformers, with an index if there are
/// several files, and with config.json if it is known. Without options, the
/// original files are reproduced exactly if no weight has changed. The folder
/// is written under another name and renamed when complete; an existing folder
/// must be empty. Needs memory for one tensor of the file and one parameter.
/// \throws WeightError if the model does not fit into such files or a parameter
/// is missing; CheckpointError
Exported exportHuggingFace(const WeightSource &source,
                           const std::string &folder,
                           const ExportOptions &options);

/// Writes a model file of llm.c, for GPT-2 with a tied head only. The file is
/// written under another name and renamed when complete; it must not exist.
/// \throws WeightError and CheckpointError as exportHuggingFace
Exported exportLlmc(const WeightSource &source, const std::string &file,
                    const ExportOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

//===- export.h - Exports weights to files of other tools -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_EXPORT_H
#define MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

/// Transformers 4 limits its files to this number of bytes.
inline constexpr std::int64_t kShardBytes = 5'000'000'000;

/// Holds the options of an export. The export reproduces the structure of the
/// original files. Files of a new structure are written if there are no
/// original files, or if `family` or `shardBytes` is given without `like`.
struct ExportOptions {
  /// Sets the type of all parameters. By default, parameters have their types
  /// in the original files or, in files of a new structure, in the source.
  std::optional<ElementType> type;
  /// Provides the original files from which the export takes names, order,
  /// metadata and non-parameter tensors. If null, the export uses the original
  /// files of the exported weights.
  const WeightSource *like = nullptr;
  /// Selects the model family that names the tensors in files of a new
  /// structure. The default "" selects the first family that fits.
  std::string family;
  /// Sets the number of attention heads. The header of llm.c needs this number,
  /// and only weights from llm.c state it.
  std::optional<std::int64_t> heads;
  /// Limits the bytes of each file of a new structure; the default is
  /// kShardBytes.
  std::optional<std::int64_t> shardBytes;
};

struct Exported {
  std::vector<std::string> files;
  bool hasConfig = false;
  std::int64_t tensors = 0, bytes = 0;
  /// Names the tensors of the original files that were not exported.
  std::vector<std::string> leftOut;
};

/// Writes a folder of safetensors for Transformers, with an index if there are
/// several files, and with config.json if its text is known. Without options,
/// an export of unchanged weights reproduces the original files exactly. The
/// folder is written under another name and renamed when complete. An existing
/// folder must be empty. The export needs memory for one tensor of the file and
/// one parameter.
/// \throws WeightError if the format cannot represent the model, or if a
/// parameter is missing
/// \throws CheckpointError if a file cannot be written, or if a source tensor
/// is damaged
Exported exportHuggingFace(const WeightSource &source,
                           const std::string &folder,
                           const ExportOptions &options);

/// Writes a model file of llm.c, which can only hold GPT-2 with a tied head.
/// The file is written under another name and renamed when complete. The path
/// `file` must not exist yet.
/// \throws WeightError and CheckpointError like exportHuggingFace
Exported exportLlmc(const WeightSource &source, const std::string &file,
                    const ExportOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

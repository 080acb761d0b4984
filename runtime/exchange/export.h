//===- export.h - Weights become somebody else's files ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_EXPORT_H
#define MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

#include <optional>
#include <string>
#include <vector>

#include "runtime/exchange/weight_source.h"

namespace mtplan::runtime {

/// What Transformers 4 takes for a file, in bytes.
inline constexpr std::int64_t kShardBytes = 5'000'000'000;

struct ExportOptions {
  /// Of all parameters; nothing: as the files were, or else as they are here.
  std::optional<ElementType> type;
  /// Whose files' names, order, metadata and other tensors are taken; null: the
  /// source's own origin, if it has one.
  const WeightSource *like = nullptr;
  /// Whose usual names are taken, in place of those of the source's origin; "":
  /// what fits.
  std::string family;
  /// For llm.c, of a model that did not come from there.
  std::optional<std::int64_t> heads;
  /// Largest file, in place of the source's origin's; nothing: kShardBytes
  /// where there is none.
  std::optional<std::int64_t> shardBytes;
};

struct Exported {
  std::vector<std::string> files; ///< names
  bool hasConfig = false;         ///< config.json is among them
  std::int64_t tensors = 0, bytes = 0;
  /// Of the origin's: neither parameters nor kept beside them.
  std::vector<std::string> leftOut;
};

/// Writes a folder of safetensors that Transformers read: with an index if
/// there are several, and config.json if it is known. Exactly the files that
/// the weights came from, if nothing has changed. The folder appears when it
/// is whole; it must not be there, or be an empty one. In memory: one tensor of
/// the file and one parameter. \throws WeightError if the model has no place in
/// such files, or they have
///         none there; CheckpointError
Exported exportHuggingFace(const WeightSource &source,
                           const std::string &folder,
                           const ExportOptions &options);

/// Writes a model file of llm.c, which only GPT-2 with a tied head has. The
/// file appears when it is whole; it must not be there.
/// \throws as above
Exported exportLlmc(const WeightSource &source, const std::string &file,
                    const ExportOptions &options);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_EXPORT_H

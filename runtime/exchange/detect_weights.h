//===- detect_weights.h - Recognises files of weights -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H
#define MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H

#include <cstdint>
#include <string>

namespace mtplan::runtime {

enum class WeightOwner : std::uint8_t { mtplan, huggingFace, llmc };

/// Returns the format of the weights at a path. The function reads only names
/// and the first bytes of files, so it does not notice every damaged file.
/// \throws DataError if the format is not supported, or if there are no weights
WeightOwner detectWeights(const std::string &path);

/// Returns the folder of a checkpoint: `path` itself, or the newest checkpoint
/// in `path`. Returns "" if there is none.
std::string checkpointAt(const std::string &path);

bool hasHuggingFace(const std::string &folder);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H

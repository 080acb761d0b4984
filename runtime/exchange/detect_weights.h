//===- detect_weights.h - Recognises files of weights -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H
#define MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H

#include <cstdint>
#include <string>

namespace mtplan::runtime {

enum class WeightOwner : std::uint8_t { mtplan, huggingFace, llmc };

/// Looks at names and first bytes only; the files may still be damaged.
/// \throws DataError if the weights are of a kind that is not read, or if there
/// are none
WeightOwner detectWeights(const std::string &path);

/// Returns the checkpoint: `path`, or the newest in it; "" if there is none.
std::string checkpointAt(const std::string &path);

/// Returns whether this is a folder with safetensors under Hugging Face's
/// names.
bool hasHuggingFace(const std::string &folder);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H

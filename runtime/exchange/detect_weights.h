//===- detect_weights.h - Whose weights are these? --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H
#define MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H

#include <cstdint>
#include <string>

namespace mtplan::runtime {

enum class WeightOwner : std::uint8_t { mtplan, huggingFace, llmc };

/// By names and first bytes alone: what is there may still be damaged.
/// \throws DataError if it is somebody's whose weights are not read, or nothing
WeightOwner detectWeights(const std::string &path);

/// The checkpoint that is meant: `path`, or the newest in it; "" if neither.
std::string checkpointAt(const std::string &path);

/// Whether it is a folder with safetensors under the names of Hugging Face.
bool hasHuggingFace(const std::string &folder);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXCHANGE_DETECT_WEIGHTS_H

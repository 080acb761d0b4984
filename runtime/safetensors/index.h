//===- index.h - Which file of a set holds which tensor ---------*- C++ -*-===//
//
// `model.safetensors.index.json`, beside the files of a model that is too large
// for one:
//
//   {"metadata": {"total_size": <bytes of all tensors>, ...},
//    "weight_map": {"<tensor>": "model-00001-of-00003.safetensors", ...}}
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_INDEX_H
#define MTPLAN_RUNTIME_SAFETENSORS_INDEX_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mtplan::runtime {

struct ShardIndex {
  /// Bytes of all tensors, without the headers; -1: not said.
  std::int64_t totalSize = -1;
  /// What else "metadata" holds, such as "total_parameters": JSON, indented for
  /// its place, so that it is written as it was read.
  std::map<std::string, std::string> otherMetadata;
  /// From a tensor's name to that of a file in the same folder.
  std::map<std::string, std::string> weightMap;

  bool operator==(const ShardIndex &) const = default;
};

/// \throws DataError
ShardIndex readIndex(const std::string &path);
/// From text in memory; `file` is for messages.
/// \throws DataError
ShardIndex parseIndex(const std::string &file, std::string_view text);

/// The file's bytes, the same that transformers writes: sorted keys, two spaces
/// a level, ASCII, a newline at the end.
/// \throws std::invalid_argument if a name is not UTF-8
std::string writeIndex(const ShardIndex &index);

/// "model-00002-of-00003.safetensors" for the second of three.
std::string shardName(std::int64_t number, std::int64_t count);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_INDEX_H

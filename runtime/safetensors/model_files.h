//===- model_files.h - The tensors of a model -------------------*- C++ -*-===//
//
// A model is a folder with `model.safetensors`, or with
// `model.safetensors.index.json` and the files that it names; or one of these
// files itself. Index and files must agree: every file exists, every tensor is
// in the file that the index names and in no other, and no file holds a tensor
// that the index lacks. Otherwise they are of two models, or of two versions of
// one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_MODEL_FILES_H
#define MTPLAN_RUNTIME_SAFETENSORS_MODEL_FILES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/files.h"
#include "runtime/safetensors/header.h"

namespace mtplan::runtime {

/// The index `model.safetensors.index.json`, beside the files of a model that
/// is too large for one:
///
///   {"metadata": {"total_size": <bytes of all tensors>, ...},
///    "weight_map": {"<tensor>": "model-00001-of-00003.safetensors", ...}}
struct ShardIndex {
  /// Bytes of all tensors, without the headers; -1: unknown.
  std::int64_t totalSize = -1;
  /// Other members of "metadata", such as "total_parameters": JSON, indented
  /// for its place, so that it is written as it was read.
  std::map<std::string, std::string> otherMetadata;
  /// Maps a tensor's name to that of a file in the same folder.
  std::map<std::string, std::string> weightMap;

  bool operator==(const ShardIndex &) const = default;
};

/// Reads an index.
/// \throws DataError
ShardIndex readIndex(const std::string &path);
/// Parses text in memory; `file` is for messages.
/// \throws DataError
ShardIndex parseIndex(const std::string &file, std::string_view text);

/// Returns the bytes that Transformers writes: sorted keys, two spaces a level,
/// ASCII, a newline at the end.
/// \throws std::invalid_argument if a name is not UTF-8
std::string writeIndex(const ShardIndex &index);

/// Returns "model-00002-of-00003.safetensors" for the second of three.
std::string shardName(std::int64_t number, std::int64_t count);

struct ModelFile {
  explicit ModelFile(const std::string &path)
      : bytes(path), header(readHeader(bytes)) {}

  MappedFile bytes;
  SafetensorsHeader header;
};

/// The place of a tensor. Lives as long as its ModelFiles, which may be moved.
struct ModelTensor {
  const MappedFile *file;
  const SafeTensor *tensor;
  std::int64_t offset; ///< of its first byte in the file

  const std::byte *data() const { return file->at(offset, tensor->bytes()); }
};

class ModelFiles {
public:
  /// \throws DataError
  static ModelFiles open(const std::string &path);

  /// Returns null if no tensor has this name.
  const ModelTensor *find(std::string_view name) const;
  /// Returns all tensors by name.
  const std::map<std::string, ModelTensor, std::less<>> &tensors() const {
    return places;
  }

  /// Returns the files in the order of their names.
  const std::vector<std::unique_ptr<const ModelFile>> &files() const {
    return opened;
  }
  /// Returns null if the model is one file without an index.
  const ShardIndex *index() const { return shards ? &*shards : nullptr; }

private:
  ModelFiles() = default;
  static ModelFiles openOne(const std::string &path);
  static ModelFiles openShards(const std::string &indexPath);
  void openShardFiles(const std::string &indexPath);

  std::vector<std::unique_ptr<const ModelFile>> opened;
  std::optional<ShardIndex> shards;
  std::map<std::string, ModelTensor, std::less<>> places;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_SAFETENSORS_MODEL_FILES_H

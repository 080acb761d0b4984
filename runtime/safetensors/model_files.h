//===- model_files.h - The tensors of a model -------------------*- C++ -*-===//
//
// A model is a folder with `model.safetensors`, or with
// `model.safetensors.index.json` and the files that this index names. The path
// of one of these files also names a model. The index and the files must match,
// because otherwise the files may belong to different models or versions. Every
// file of the index must exist. Every tensor of the index must be in the file
// that the index names and in no other file. No file may hold a tensor that the
// index lacks.
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

/// Holds the index of a model with several files, model.safetensors.index.json:
///
///   {"metadata": {"total_size": <bytes of all tensors>, ...},
///    "weight_map": {"<tensor>": "model-00001-of-00003.safetensors", ...}}
struct ShardIndex {
  /// Holds the size of all tensors in bytes, without headers; -1 if unknown.
  std::int64_t totalSize = -1;
  /// Holds the other members of "metadata", such as "total_parameters". The
  /// values are JSON text, indented as in Transformers, so that writeIndex()
  /// restores an index of Transformers exactly.
  std::map<std::string, std::string> otherMetadata;
  /// Maps a tensor's name to the name of a file in the same folder.
  std::map<std::string, std::string> weightMap;

  bool operator==(const ShardIndex &) const = default;
};

/// \throws DataError if the index is invalid
ShardIndex readIndex(const std::string &path);
/// \param file  name for error messages
/// \throws DataError if the index is invalid
ShardIndex parseIndex(const std::string &file, std::string_view text);

/// Returns the text that Transformers writes: sorted keys, two spaces per
/// level, ASCII, a newline at the end.
/// \throws std::invalid_argument if a name is not UTF-8
std::string writeIndex(const ShardIndex &index);

/// Returns "model-00002-of-00003.safetensors" for file 2 of 3.
std::string shardName(std::int64_t number, std::int64_t count);

struct ModelFile {
  explicit ModelFile(const std::string &path)
      : bytes(path), header(readHeader(bytes)) {}

  MappedFile bytes;
  SafetensorsHeader header;
};

/// Locates a tensor in a file. A ModelTensor is valid as long as its
/// ModelFiles, which may be moved.
struct ModelTensor {
  const MappedFile *file;
  const SafeTensor *tensor;
  std::int64_t offset; ///< from the start of the file to the tensor's data

  const std::byte *data() const { return file->at(offset, tensor->bytes()); }
};

class ModelFiles {
public:
  /// \throws DataError if a file is missing or invalid, or if the files do not
  /// match the index
  static ModelFiles open(const std::string &path);

  const ModelTensor *find(std::string_view name) const;
  const std::map<std::string, ModelTensor, std::less<>> &tensors() const {
    return places;
  }

  /// Returns the opened files, sorted by name.
  const std::vector<std::unique_ptr<const ModelFile>> &files() const {
    return opened;
  }
  /// Returns null if the model is a single file.
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

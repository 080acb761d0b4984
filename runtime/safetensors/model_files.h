//===- model_files.h - The tensors of a model, in one file or many -*- C++ -*-//
//
// A folder with `model.safetensors`, or with `model.safetensors.index.json` and
// the files that it names; or one of these files itself. Index and files must
// agree: every file is there, every tensor is in the file that the index says
// and in no other, and no file holds one that the index does not name. What
// does not agree is of two models, or of two versions of one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_SAFETENSORS_MODEL_FILES_H
#define MTPLAN_RUNTIME_SAFETENSORS_MODEL_FILES_H

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/mapped_file.h"
#include "runtime/safetensors/header.h"
#include "runtime/safetensors/index.h"

namespace mtplan::runtime {

struct ModelFile {
  explicit ModelFile(const std::string &path)
      : bytes(path), header(readHeader(bytes)) {}

  MappedFile bytes;
  SafetensorsHeader header;
};

/// Where a tensor is. Lives as long as its ModelFiles, which may be moved.
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

  /// Null if no tensor is called so.
  const ModelTensor *find(std::string_view name) const;
  /// By name.
  const std::map<std::string, ModelTensor, std::less<>> &tensors() const {
    return places;
  }

  /// By their names.
  const std::vector<std::unique_ptr<const ModelFile>> &files() const {
    return opened;
  }
  /// Null if the model is one file without an index.
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

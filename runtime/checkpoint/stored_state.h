//===- stored_state.h - The tensors of a checkpoint on disk -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_STORED_STATE_H
#define MTPLAN_RUNTIME_CHECKPOINT_STORED_STATE_H

#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"
#include "runtime/data/mapped_file.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// A file of a checkpoint beside the state, which training does not look at: of
/// weights that came from elsewhere, how those files were, as its metadata, and
/// what was in them that is no parameter.
inline constexpr const char *kOriginName = "origin.safetensors";

/// Of one tensor of a checkpoint.
struct StoredTensor {
  std::string type; ///< "F32", as safetensors have it
  std::vector<std::int64_t> shape;
  const MappedFile *file = nullptr;
  std::int64_t offset = 0, bytes = 0; ///< in the file
  std::string checksum;
};

class StoredState {
public:
  /// Opens all files and holds their headers against the manifest.
  /// \throws CheckpointError, DataError
  explicit StoredState(const std::string &checkpoint);

  const RunState &run() const { return manifest.run; }
  /// By name.
  const std::map<std::string, StoredTensor> &tensors() const { return all; }
  /// Those of the origin, by the names that they had there.
  const std::map<std::string, StoredTensor> &others() const { return kept; }
  /// Empty: the checkpoint has none.
  const std::map<std::string, std::string> &origin() const { return texts; }
  /// With its size.
  const std::vector<ManifestFile> &storedFiles() const {
    return manifest.files;
  }
  /// Reads a tensor whole and holds it against its checksum.
  /// \throws CheckpointError with its name
  static void verify(const std::string &name, const StoredTensor &tensor);

private:
  Manifest manifest;
  std::vector<MappedFile> files;
  std::map<std::string, StoredTensor> all, kept;
  std::map<std::string, std::string> texts;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_STORED_STATE_H

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
  /// Reads a tensor whole and holds it against its checksum.
  /// \throws CheckpointError with its name
  static void verify(const std::string &name, const StoredTensor &tensor);

private:
  Manifest manifest;
  std::vector<MappedFile> files;
  std::map<std::string, StoredTensor> all;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_STORED_STATE_H

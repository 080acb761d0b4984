//===- checkpoint_folder.h - Checkpoints on disk ----------------*- C++ -*-===//
//
//   FOLDER/step-00000100/          a complete checkpoint
//   FOLDER/step-00000200.partial/  a checkpoint that is being written, or
//                                  that a crashed run left
//   FOLDER/latest                  has the name of the newest checkpoint, for
//                                  users and scripts
//
// The lock FOLDER/lock lets only one run at a time write to the folder.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H
#define MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"
#include "runtime/data/files.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns "step-00000100".
std::string stepName(std::int64_t step);

/// Returns the steps of all complete checkpoints in ascending order. Returns no
/// steps if the folder does not exist.
/// \throws CheckpointError if the folder cannot be listed
std::vector<std::int64_t> stepsIn(const std::string &folder);

/// Reads a checkpoint's manifest.json. Checks the manifest's checksum, and that
/// all files exist and have the sizes that the manifest states.
/// \throws CheckpointError if a check fails
Manifest readManifest(const std::string &checkpoint);

class FolderLock {
public:
  /// Creates the folder if necessary, removes partial checkpoints of crashed
  /// runs, and corrects `latest`.
  /// \throws CheckpointError if a file operation fails, if another run has the
  ///         lock, or if the folder has checkpoints of another version, because
  ///         this run would later remove these checkpoints
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int handle = -1;
};

/// Returns the folder in which a checkpoint is written until it is complete.
std::string partialFolder(const std::string &folder, std::int64_t step);

/// Completes the checkpoint in the partial folder: writes the manifest and
/// renames the folder. Then sets `latest`, and removes all checkpoints up to
/// this step except the newest `keep`. Checkpoints of later steps are kept. A
/// run resumes from the newest intact checkpoint, so these checkpoints are
/// damaged. Returns an error if setting `latest` or a removal fails, else "".
/// \param named  called once the checkpoint is complete, before any removal
/// \throws CheckpointError if the checkpoint cannot be completed
std::string publish(
    const std::string &folder, const Manifest &manifest, int keep,
    const std::function<void()> &named = [] {});

//===----------------------------------------------------------------------===//
// One checkpoint
//===----------------------------------------------------------------------===//

/// Checkpoints of imported weights have this file, which training ignores. Its
/// metadata describes the original files, and its tensors are the original
/// tensors that are not parameters.
inline constexpr const char *kOriginName = "origin.safetensors";

struct StoredTensor {
  std::string type; ///< "F32", as in safetensors
  std::vector<std::int64_t> shape;
  const MappedFile *file = nullptr;
  std::int64_t offset = 0, bytes = 0; ///< range in the file
  std::string checksum;
};

class StoredState {
public:
  /// Opens all files and compares their headers with the manifest.
  /// \throws CheckpointError or DataError if a header differs from the manifest
  explicit StoredState(const std::string &checkpoint);

  const RunState &run() const { return manifest.run; }
  /// Returns the parameters and moments, by name.
  const std::map<std::string, StoredTensor> &tensors() const { return all; }
  /// Returns the tensors of kOriginName, by their original names.
  const std::map<std::string, StoredTensor> &others() const { return kept; }
  /// Returns the metadata of kOriginName; empty without this file.
  const std::map<std::string, std::string> &origin() const { return texts; }
  const std::vector<ManifestFile> &storedFiles() const {
    return manifest.files;
  }
  /// Reads a tensor and compares its checksum with the manifest's.
  /// \throws CheckpointError with the tensor's name if they differ
  static void verify(const std::string &name, const StoredTensor &tensor);

private:
  Manifest manifest;
  std::vector<MappedFile> files;
  std::map<std::string, StoredTensor> all, kept;
  std::map<std::string, std::string> texts;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

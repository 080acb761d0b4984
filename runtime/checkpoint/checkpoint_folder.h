//===- checkpoint_folder.h - Checkpoints on disk ----------------*- C++ -*-===//
//
//   FOLDER/step-00000100/          complete: it gets this name last
//   FOLDER/step-00000200.partial/  being written, or left by a run that died
//   FOLDER/latest                  name of the newest, for people and scripts
//
// Only one run at a time writes to a folder: it holds a lock on FOLDER/lock.
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

/// Returns the steps of all complete checkpoints, ascending; none if there is
/// no folder. \throws CheckpointError if the folder cannot be listed
std::vector<std::int64_t> stepsIn(const std::string &folder);

/// Reads and checks a checkpoint's manifest.json, and that the files exist with
/// their sizes.
/// \throws CheckpointError
Manifest readManifest(const std::string &checkpoint);

/// Keeps other runs from writing to the folder, which it creates if necessary.
class FolderLock {
public:
  /// Also removes the partial checkpoints of runs that died, and sets `latest`
  /// if one died before it could. \throws CheckpointError, also if another run
  /// has the lock, or if there are
  ///         checkpoints of another version, which would be removed in turn
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int handle = -1;
};

/// Returns the folder in which a step is written.
std::string partialFolder(const std::string &folder, std::int64_t step);
/// Completes the checkpoint in the partial folder: writes the manifest and
/// renames the folder. Then sets `latest` and removes all but the newest `keep`
/// checkpoints; returns what failed of this, "" if nothing. Checkpoints of
/// later steps, which exist only if they are damaged, do not count. \param
/// named  called once the checkpoint is complete, before anything is
///               removed
std::string publish(
    const std::string &folder, const Manifest &manifest, int keep,
    const std::function<void()> &named = [] {});

//===----------------------------------------------------------------------===//
// One checkpoint
//===----------------------------------------------------------------------===//

/// A file of a checkpoint that training ignores. For imported weights it
/// describes the original files in its metadata, and holds their tensors that
/// are no parameters.
inline constexpr const char *kOriginName = "origin.safetensors";

/// One tensor of a checkpoint on disk.
struct StoredTensor {
  std::string type; ///< "F32", as safetensors have it
  std::vector<std::int64_t> shape;
  const MappedFile *file = nullptr;
  std::int64_t offset = 0, bytes = 0; ///< in the file
  std::string checksum;
};

/// The tensors of a checkpoint on disk.
class StoredState {
public:
  /// Opens all files and compares their headers with the manifest.
  /// \throws CheckpointError, DataError
  explicit StoredState(const std::string &checkpoint);

  const RunState &run() const { return manifest.run; }
  /// Returns the tensors of the state by name.
  const std::map<std::string, StoredTensor> &tensors() const { return all; }
  /// Returns the original tensors that are no parameters, by their names there.
  const std::map<std::string, StoredTensor> &others() const { return kept; }
  /// Returns the metadata of kOriginName; empty if the checkpoint has no such
  /// file.
  const std::map<std::string, std::string> &origin() const { return texts; }
  /// Returns the files with their sizes.
  const std::vector<ManifestFile> &storedFiles() const {
    return manifest.files;
  }
  /// Reads a whole tensor and compares its checksum with the manifest's.
  /// \throws CheckpointError with its name
  static void verify(const std::string &name, const StoredTensor &tensor);

private:
  Manifest manifest;
  std::vector<MappedFile> files;
  std::map<std::string, StoredTensor> all, kept;
  std::map<std::string, std::string> texts;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

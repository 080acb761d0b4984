//===- checkpoint_folder.h - Checkpoints on disk ----------------*- C++ -*-===//
//
//   FOLDER/step-00000100/          complete; renamed to this when finished
//   FOLDER/step-00000200.partial/  in progress, or left by a crashed run
//   FOLDER/latest                  name of the newest, for users and scripts
//
// Only one run at a time writes to a folder, because the run holds a lock on
// FOLDER/lock.
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

/// Returns the steps of all complete checkpoints, ascending; empty if the
/// folder does not exist.
/// \throws CheckpointError if the folder cannot be listed
std::vector<std::int64_t> stepsIn(const std::string &folder);

/// Reads a checkpoint's manifest.json, and checks its checksum and that all
/// files exist with their sizes.
/// \throws CheckpointError if one of these checks fails
Manifest readManifest(const std::string &checkpoint);

/// Locks a folder against other runs, and creates it if necessary.
class FolderLock {
public:
  /// Removes partial checkpoints of crashed runs, and corrects `latest`.
  /// \throws CheckpointError also if another run has the lock, or if there are
  ///         checkpoints of another version, which this run would later remove
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
/// renames the folder. Then sets `latest` and removes all but the newest `keep`
/// of the checkpoints up to this step. Later checkpoints exist only if they are
/// damaged; they are kept. Returns the error if `latest` cannot be set or a
/// checkpoint cannot be removed; "" if there is none.
/// \param named  called once the checkpoint is complete, before any removal
/// \throws CheckpointError if the checkpoint cannot be completed
std::string publish(
    const std::string &folder, const Manifest &manifest, int keep,
    const std::function<void()> &named = [] {});

//===----------------------------------------------------------------------===//
// One checkpoint
//===----------------------------------------------------------------------===//

/// Names a file that checkpoints of imported weights have, and that training
/// ignores. The file's metadata describes the original files, and its tensors
/// are those of the original files that are not parameters.
inline constexpr const char *kOriginName = "origin.safetensors";

/// Describes one tensor of a checkpoint on disk.
struct StoredTensor {
  std::string type; ///< "F32", as in safetensors
  std::vector<std::int64_t> shape;
  const MappedFile *file = nullptr;
  std::int64_t offset = 0, bytes = 0; ///< range in the file
  std::string checksum;
};

/// An opened checkpoint.
class StoredState {
public:
  /// Opens all files and compares their headers with the manifest.
  /// \throws CheckpointError or DataError if any differs
  explicit StoredState(const std::string &checkpoint);

  /// Returns the progress of the run that wrote the checkpoint.
  const RunState &run() const { return manifest.run; }
  /// Returns the parameters and moments, by name.
  const std::map<std::string, StoredTensor> &tensors() const { return all; }
  /// Returns the tensors of kOriginName, by their original names.
  const std::map<std::string, StoredTensor> &others() const { return kept; }
  /// Returns the metadata of kOriginName; empty if the checkpoint has no such
  /// file.
  const std::map<std::string, std::string> &origin() const { return texts; }
  /// Returns the files with their sizes.
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

//===- checkpoint_folder.h - Where checkpoints lie --------------*- C++ -*-===//
//
//   FOLDER/step-00000100/          whole: it is renamed to this name last
//   FOLDER/step-00000200.partial/  being written, or left by a run that died
//   FOLDER/latest                  name of the newest, for people and scripts
//
// One run writes to a folder at a time: it holds a lock on FOLDER/lock.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H
#define MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace mtplan::runtime {

/// "step-00000100"
std::string stepName(std::int64_t step);

/// Steps of which there is a whole checkpoint, ascending; none where there is
/// no folder.
/// \throws CheckpointError if it cannot be listed
std::vector<std::int64_t> stepsIn(const std::string &folder);

/// Reads and checks FOLDER/manifest.json, and that its files are there with
/// their sizes.
/// \throws CheckpointError
Manifest readManifest(const std::string &checkpoint);

/// For as long as it lives nobody else writes to the folder, which is made if
/// it is not there.
class FolderLock {
public:
  /// Also removes what runs that died have left half-written, and sets `latest`
  /// where one died before it could.
  /// \throws CheckpointError, also if another run has it, or if there are
  ///         checkpoints of another version, which would be removed in turn
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

private:
  int handle = -1;
};

/// The folder in which a step is written.
std::string partialFolder(const std::string &folder, std::int64_t step);
/// Makes what is written there a checkpoint: its manifest, its name. Then sets
/// `latest` and removes the oldest but `keep`; what of this could not be done
/// is returned, "" if nothing. Later ones, which only are there if they are
/// damaged, do not count.
/// \param named  called once it is there for good, before anything is removed
std::string publish(
    const std::string &folder, const Manifest &manifest, int keep,
    const std::function<void()> &named = [] {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

//===- manifest.h - The description of a checkpoint -------------*- C++ -*-===//
//
// manifest.json is written last, so a folder with a manifest is complete. The
// manifest has the checksum of every tensor and header. The member "checksum"
// of the manifest is the checksum of the manifest's text with an empty
// "checksum". docs/checkpoints.md lists the fields.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_MANIFEST_H
#define MTPLAN_RUNTIME_CHECKPOINT_MANIFEST_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/durable_file.h"
#include "runtime/training/update_rule.h"

namespace mtplan::runtime {

inline constexpr int kCheckpointVersion = 1;
inline constexpr const char *kManifestName = "manifest.json";

/// Holds the progress and the identity of a run.
struct RunState {
  std::int64_t step = 0;    ///< completed steps
  std::int64_t samples = 0; ///< consumed by all completed steps
  std::int64_t updates = 0; ///< completed steps that were not skipped
  std::uint64_t seed = 0;
  std::optional<LossScalerState> scaler;
  int skipped = 0; ///< consecutive skipped steps before this checkpoint

  std::string model;                          ///< name, for display
  std::int64_t globalBatch = 0, sequence = 0; ///< values of the last step
  std::string plan;                           ///< checksum of the plan
  std::string data; ///< checksum that identifies the training data
  std::map<std::string, std::string> options; ///< changed options, for display

  bool operator==(const RunState &) const = default;
};

struct ManifestFile {
  std::string name;
  std::int64_t bytes = 0;
  std::string header; ///< checksum of all bytes before the data
  bool operator==(const ManifestFile &) const = default;
};

struct ManifestTensor {
  std::string name, file, checksum;
  bool operator==(const ManifestTensor &) const = default;
};

struct Manifest {
  RunState run;
  std::vector<ManifestFile> files;
  std::vector<ManifestTensor> tensors; ///< sorted by name
  bool operator==(const Manifest &) const = default;
};

/// Reports an undamaged manifest of another version.
struct ForeignVersion : CheckpointError {
  using CheckpointError::CheckpointError;
};

std::string manifestText(const Manifest &manifest);
/// Parses a manifest. The members "format", "version" and "checksum" have the
/// same meaning in all versions. `file` names the manifest in error messages.
/// \throws CheckpointError with the JSON pointer of the error, or
/// ForeignVersion
Manifest parseManifest(const std::string &file, const std::string &text);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_MANIFEST_H

//===- manifest.h - The description of a checkpoint -------------*- C++ -*-===//
//
// manifest.json is written last, so a folder that has one is complete. It has
// the checksum of every tensor and header, and one of its own text with that
// field empty. docs/checkpoints.md lists the fields.
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

/// The progress of a run, and what it trains.
struct RunState {
  std::int64_t step = 0;    ///< steps done
  std::int64_t samples = 0; ///< drawn from the data, by all steps
  std::int64_t updates = 0; ///< steps that were not skipped
  std::uint64_t seed = 0;
  std::optional<LossScalerState> scaler;
  int skipped = 0; ///< steps in a row, up to now

  std::string model;                          ///< name, for people
  std::int64_t globalBatch = 0, sequence = 0; ///< of the last step
  std::string plan;                           ///< checksum of the plan
  std::string data; ///< checksum of the data's identity
  std::map<std::string, std::string> options; ///< changed options, for people

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
  std::vector<ManifestTensor> tensors; ///< by name
  bool operator==(const Manifest &) const = default;
};

/// Reports a manifest of another version that has no visible damage.
struct ForeignVersion : CheckpointError {
  using CheckpointError::CheckpointError;
};

std::string manifestText(const Manifest &manifest);
/// Parses a manifest. The members "format", "version" and "checksum" mean the
/// same in all versions. \param file  for messages \throws CheckpointError with
/// the JSON pointer of what is wrong \throws ForeignVersion
Manifest parseManifest(const std::string &file, const std::string &text);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_MANIFEST_H

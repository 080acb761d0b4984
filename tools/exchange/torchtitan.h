//===- torchtitan.h - torchtitan's TOML, accelerate's YAML ------*- C++ -*-===//
//
// A torchtitan job has the sections [parallelism], [training] and
// [activation_checkpoint]. Newer versions of torchtitan use the same names in
// Python dataclasses.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H
#define MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/simulate/schedule.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Reads a file's text. Errors start with the JSON pointer of the key, such as
/// "/training/seq_len", or with the line. `launch` gives the number of layers,
/// which the file lacks.
TrainerConfig readTorchtitan(const std::string &text, const Launch &launch);

/// Writes the file's text. Notes list the choices that the file cannot express.
Exported writeTorchtitan(const TrainerConfig &config);

/// Divides layers into `parts` stages by torchtitan's rule, which counts the
/// embedding as a layer of the first stage and the head as a layer of the last.
/// Returns an empty list if there are too few layers.
std::vector<int> torchtitanParts(std::int64_t layers, int parts);

struct NamedSchedule {
  planner::ScheduleKind kind = planner::ScheduleKind::oneForwardOneBackward;
  /// If set, a rank has several virtual stages, two by default.
  bool manyChunks = false;
  std::string note; ///< how mtplan's schedule differs, or empty
};

/// Accepts the names of torch.distributed.pipelining, and "ZBV", in lower or
/// upper case. Returns nothing for other names.
std::optional<NamedSchedule> scheduleNamed(const std::string &name);

std::string scheduleNames();

const char *pytorchName(planner::ScheduleKind kind);

/// Writes accelerate's YAML for FSDP2, for `accelerate launch --config_file`.
/// The notes list options that the launched script must set, and choices that
/// the format cannot express.
Exported writeAccelerate(const TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H

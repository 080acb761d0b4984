//===- torchtitan.h - torchtitan's TOML -------------------------*- C++ -*-===//
//
// The sections [parallelism], [training] and [activation_checkpoint] of a
// torchtitan job. Newer versions keep the names in Python dataclasses.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H
#define MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H

#include <cstdint>
#include <string>
#include <vector>

#include "tools/exchange/launch.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Reads a file. Errors start with the JSON pointer of the key,
/// "/training/seq_len", or with the line. `launch` has the number of layers,
/// which the file does not have.
TrainerConfig readTorchtitan(const std::string &text, const Launch &launch);

Exported writeTorchtitan(const TrainerConfig &config);

/// Returns the layers of each of `parts` stages by torchtitan's rule, which
/// counts the embedding as a layer of the first and the head as a layer of the
/// last; empty if there are too few layers.
std::vector<int> torchtitanParts(std::int64_t layers, int parts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H

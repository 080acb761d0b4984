//===- torchtitan.h - torchtitan's TOML -------------------------*- C++ -*-===//
//
// Sections [parallelism], [training] and [activation_checkpoint] of a
// torchtitan job. Newer versions keep the same names in Python dataclasses.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H
#define MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H

#include <cstdint>
#include <string>
#include <vector>

#include "tools/exchange/foreign_config.h"
#include "tools/exchange/launch.h"

namespace mtplan::tools {

/// Errors start with the JSON pointer of the key, "/training/seq_len", or with
/// the line. `launch` gives the layers, which the file does not say.
ForeignConfig readTorchtitan(const std::string &text, const Launch &launch);

Exported writeTorchtitan(const ForeignConfig &config);

/// Layers of each of `parts` by torchtitan's own rule, where the embedding
/// counts as a layer of the first part and the head as one of the last; empty
/// if there are too few layers.
std::vector<int> torchtitanParts(std::int64_t layers, int parts);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_TORCHTITAN_H

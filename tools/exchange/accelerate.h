//===- accelerate.h - accelerate's YAML for FSDP2 ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_ACCELERATE_H
#define MTPLAN_TOOLS_EXCHANGE_ACCELERATE_H

#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Writes the file for `accelerate launch --config_file`. The notes hold
/// options that the launched script must set, and choices that the format
/// cannot express.
Exported writeAccelerate(const TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_ACCELERATE_H

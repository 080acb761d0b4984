//===- accelerate.h - accelerate's YAML for FSDP2 ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_ACCELERATE_H
#define MTPLAN_TOOLS_EXCHANGE_ACCELERATE_H

#include "tools/exchange/foreign_config.h"

namespace mtplan::tools {

/// The file for `accelerate launch --config_file`. What the launched script has
/// to be told, and what there is no word for, stands in the notes.
Exported writeAccelerate(const ForeignConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_ACCELERATE_H

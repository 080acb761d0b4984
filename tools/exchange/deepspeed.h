//===- deepspeed.h - DeepSpeed's JSON ---------------------------*- C++ -*-===//
//
// DeepSpeed takes the pipeline and the model from code, so a file says less
// than a Megatron-LM command line: batches, precision, ZeRO, offload.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H
#define MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H

#include <string>

#include "tools/exchange/foreign_config.h"
#include "tools/exchange/launch.h"

namespace mtplan::tools {

/// Every violation becomes an error that starts with its JSON pointer; the
/// value "auto" counts as not given.
ForeignConfig readDeepSpeed(const std::string &text, const Launch &launch);

Exported writeDeepSpeed(const ForeignConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H

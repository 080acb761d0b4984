//===- deepspeed.h - DeepSpeed's JSON ---------------------------*- C++ -*-===//
//
// DeepSpeed takes the model and the pipeline from code. The JSON file states
// only batches, precision, tensor and sequence parallelism, ZeRO, offloading
// and recomputation.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H
#define MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H

#include <string>

#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Reads a file's text. Errors name keys by their JSON pointers. The value
/// "auto" counts as not given.
TrainerConfig readDeepSpeed(const std::string &text, const Launch &launch);

/// Writes the file's text. Notes list the choices that the file cannot express.
Exported writeDeepSpeed(const TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H

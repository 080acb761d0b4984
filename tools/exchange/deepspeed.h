//===- deepspeed.h - DeepSpeed's JSON ---------------------------*- C++ -*-===//
//
// DeepSpeed's model and pipeline are code, so its file holds less than a
// Megatron-LM command line. The file states batches, precision, tensor and
// sequence parallelism, ZeRO, offloading and whether activations are
// recomputed.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H
#define MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H

#include <string>

#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Reads a file's text. Every violation becomes an error, which names keys of
/// the file by their JSON pointers. The value "auto" counts as not given.
TrainerConfig readDeepSpeed(const std::string &text, const Launch &launch);

/// Writes the file's text. Notes list the choices that the file cannot express.
Exported writeDeepSpeed(const TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_H

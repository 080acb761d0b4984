//===- deepspeed_fields.h - Sections of DeepSpeed's JSON --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_FIELDS_H
#define MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_FIELDS_H

#include <string>
#include <vector>

#include "base/json_fields.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Marks `keys` as known, and adds a warning for each that is given.
void noteIrrelevant(base::JsonFields &from,
                    const std::vector<std::string> &keys,
                    TrainerConfig &config);

/// Marks `key` as known, and adds an error if its value is neither false nor 0.
void refuseIfSet(base::JsonFields &from, const std::string &key,
                 const std::string &why);

/// Reads the ZeRO stage, its ranks, offloading and buckets. The number of
/// replicas must be known.
void readDeepSpeedZero(base::JsonFields &section, TrainerConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_FIELDS_H

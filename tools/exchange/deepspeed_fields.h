//===- deepspeed_fields.h - Sections of DeepSpeed's JSON --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_FIELDS_H
#define MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_FIELDS_H

#include <string>
#include <vector>

#include "planner/json_fields.h"
#include "tools/exchange/foreign_config.h"

namespace mtplan::tools {

/// Marks `keys` as known, with a warning for each that is given.
void noteIrrelevant(planner::JsonFields &from,
                    const std::vector<std::string> &keys,
                    ForeignConfig &config);

/// Marks `key` as known; an error if it is given and neither false nor 0.
void refuseIfSet(planner::JsonFields &from, const std::string &key,
                 const std::string &why);

/// ZeRO's stage, its ranks, offload and buckets. The replicas are known by
/// then.
void readDeepSpeedZero(planner::JsonFields &section, ForeignConfig &config);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_DEEPSPEED_FIELDS_H

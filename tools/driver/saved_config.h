//===- saved_config.h - A configuration in a saved plan ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_DRIVER_SAVED_CONFIG_H
#define MTPLAN_TOOLS_DRIVER_SAVED_CONFIG_H

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/json_fields.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::tools {

base::Json configJson(const planner::Parallelism &config);

/// Reads a whole number from 0 to 10 million.
int savedCount(base::JsonFields &fields, const char *key);

/// Returns nothing, with notes, if the configuration is malformed. Does not
/// check whether the search enumerates the configuration.
std::optional<planner::Parallelism> readConfig(base::JsonFields &plan,
                                               std::int64_t globalBatch,
                                               std::vector<std::string> &notes);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_SAVED_CONFIG_H

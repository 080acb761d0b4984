//===- data_verbs.h - `mtrun data ...` --------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_DATA_VERBS_H
#define MTPLAN_TOOLS_RUN_DATA_VERBS_H

#include <cstdint>
#include <optional>
#include <string>

#include "tools/run/data_steps.h"

namespace CLI {
class App;
}

namespace mtplan::tools {

struct DataFlags {
  std::string file, format, to;
  std::optional<std::int64_t> sequence, vocabulary;
  DataStepsFlags steps;
};

/// Adds `data` with its verbs to `app`; the subcommand.
CLI::App *describeData(CLI::App &app, DataFlags &flags);

/// What the verb that was typed prints.
/// \throws runtime::DataError, or BadInput
std::string runData(const CLI::App &data, const DataFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_DATA_VERBS_H

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

/// Adds the subcommand `data` and its verbs to `app`, and returns it.
CLI::App *describeData(CLI::App &app, DataFlags &flags);

/// Returns the text that the typed verb prints.
/// \throws runtime::DataError, or BadInput
std::string runData(const CLI::App &data, const DataFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_DATA_VERBS_H

//===- data_steps.h - `mtrun data steps` ------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_DATA_STEPS_H
#define MTPLAN_TOOLS_RUN_DATA_STEPS_H

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/token_file.h"

namespace mtplan::tools {

struct DataStepsFlags {
  std::string plan; ///< a folder that `mtplan -o` wrote, or its plan.json
  std::int64_t steps = 100;
  std::uint64_t seed = 1234;
};

/// Writes the samples of `mtrun --steps N --seed S`, step by step, for
/// stand-alone programs (docs/stand-alone.md).
/// \return a description of what was written
/// \throws runtime::DataError, or BadInput
std::string writeSteps(const std::string &file,
                       std::optional<runtime::TokenFormat> format,
                       const std::string &to, const DataStepsFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_DATA_STEPS_H

//===- data_steps.h - `mtrun data steps` ------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_DATA_STEPS_H
#define MTPLAN_TOOLS_RUN_DATA_STEPS_H

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/data/token_file.h"

namespace mtplan::tools {

struct DataStepsFlags {
  std::string plan; ///< what `mtplan -o` wrote: a folder, or its plan.json
  std::int64_t steps = 100;
  std::uint64_t seed = 1234;
};

/// Writes what `mtrun --steps N --seed S` trains on, step by step, for programs
/// that stand alone (docs/stand-alone.md).
/// \return what there is to say of it
/// \throws runtime::DataError, or BadInput
std::string writeSteps(const std::string &file,
                       std::optional<runtime::TokenFormat> format,
                       const std::string &to, const DataStepsFlags &flags);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_DATA_STEPS_H

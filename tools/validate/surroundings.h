//===- surroundings.h - What a published run ran on and with ----*- C++ -*-===//
//
// From a row's words to a machine file, a software file and the few facts that
// its source states of the one run. Nothing here looks at the measured time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_SURROUNDINGS_H
#define MTPLAN_TOOLS_VALIDATE_SURROUNDINGS_H

#include "planner/machine/software_json.h"
#include "tools/validate/run_row.h"

namespace mtplan::tools {

/// A machine, as a preset has it but for what the row says of its network.
struct FoundMachine {
  std::string preset;
  planner::Machine machine;
};

/// Empty if no preset stands for the row's hardware; then `error` says so and
/// names the nearest.
std::optional<FoundMachine> machineOf(const RunRow &row, std::string &error);

struct FoundSoftware {
  std::string preset;
  planner::Software software;
  bool assumed = false; ///< the source is not known: picked by flags
};

FoundSoftware softwareOf(const RunRow &row, const planner::Machine &machine);

/// Why the row says too little to be priced, or measures something else; empty
/// if it can be.
std::string exclusionOf(const RunRow &row);

/// How many samples at once: as stated, or, without a pipeline, all of a
/// replica's.
std::int64_t microBatchOf(const RunRow &row);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_SURROUNDINGS_H

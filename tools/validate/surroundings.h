//===- surroundings.h - Machine and software of a published run -*- C++ -*-===//
//
// Finds the machine file, the software file and the stated facts of a run from
// its row. The measured time is not used.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATE_SURROUNDINGS_H
#define MTPLAN_TOOLS_VALIDATE_SURROUNDINGS_H

#include "planner/machine/software_json.h"
#include "tools/validate/run_row.h"

namespace mtplan::tools {

/// A machine preset, with the network that the row states.
struct FoundMachine {
  std::string preset;
  planner::Machine machine;
};

/// Returns nothing if no preset describes the row's hardware; `error` then
/// names the nearest.
std::optional<FoundMachine> machineOf(const RunRow &row, std::string &error);

struct FoundSoftware {
  std::string preset;
  planner::Software software;
  bool assumed = false; ///< the source is unknown, and flags decided
};

FoundSoftware softwareOf(const RunRow &row, const planner::Machine &machine);

/// Returns why the row has too little to be priced, or measures something else;
/// empty if it can be priced.
std::string exclusionOf(const RunRow &row);

/// Returns the stated micro-batch or, without a pipeline, all samples of a
/// replica.
std::int64_t microBatchOf(const RunRow &row);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATE_SURROUNDINGS_H

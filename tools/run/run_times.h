//===- run_times.h - Step times over all ranks ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_TIMES_H
#define MTPLAN_TOOLS_RUN_RUN_TIMES_H

#include <string>
#include <utility>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/executor/train.h"
#include "tools/exchange/prediction.h"

namespace mtplan::tools {

/// Seconds of a step on the mean rank.
struct MeanTimes {
  std::vector<std::pair<std::string, double>> classes; ///< sum to `step`
  double step = 0.0;
  std::int64_t steps = 0; ///< number of steps in the mean
};

/// Averages over all ranks. Every rank calls it and gets the same result.
MeanTimes meanTimesOf(runtime::World &world, const runtime::Plan &plan,
                      const runtime::TrainTimes &mine);

/// Records of instructions, by rank.
using Traces = std::vector<std::vector<runtime::InstructionRun>>;

/// Gathers all records on rank 0. Every rank calls it; other ranks get nothing.
Traces gatherTraces(runtime::World &world,
                    const std::vector<runtime::InstructionRun> &mine);

/// Returns a table of measured and predicted times by class.
/// \param predicted  null if there is no prediction
std::string tableOf(const MeanTimes &times, const Prediction *predicted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_TIMES_H

//===- run_times.h - What all ranks took, on one ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_TIMES_H
#define MTPLAN_TOOLS_RUN_RUN_TIMES_H

#include <string>
#include <utility>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/executor/train.h"
#include "tools/run/prediction.h"

namespace mtplan::tools {

/// Seconds of a step on the mean rank.
struct MeanTimes {
  std::vector<std::pair<std::string, double>> classes; ///< add up to `step`
  double step = 0.0;
  std::int64_t steps = 0; ///< that it is the mean of
};

/// Every rank calls it; all get the same.
MeanTimes meanTimesOf(runtime::World &world, const runtime::Plan &plan,
                      const runtime::TrainTimes &mine);

/// By rank.
using Traces = std::vector<std::vector<runtime::InstructionRun>>;

/// Every rank calls it; rank 0 gets them, the others nothing.
Traces gatherTraces(runtime::World &world,
                    const std::vector<runtime::InstructionRun> &mine);

/// \param predicted  null: there is none
std::string tableOf(const MeanTimes &times, const Prediction *predicted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_TIMES_H

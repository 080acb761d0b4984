//===- run_watch.h - Times and output of a run ------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_WATCH_H
#define MTPLAN_TOOLS_RUN_RUN_WATCH_H

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "runtime/communicator/communicator.h"
#include "runtime/executor/train.h"
#include "runtime/metrics/run_log.h"
#include "tools/exchange/prediction.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// Holds the seconds of a step, averaged over ranks and steps.
struct MeanTimes {
  std::vector<std::pair<std::string, double>> classes; ///< sum to `step`
  double step = 0.0;
  std::int64_t steps = 0;
};

/// Averages over all ranks. Every rank must call this function.
MeanTimes meanTimesOf(runtime::World &world, const runtime::Plan &plan,
                      const runtime::TrainTimes &mine);

using Traces = std::vector<std::vector<runtime::InstructionRun>>;

/// Returns the records of all ranks on rank 0, and nothing on other ranks.
/// Every rank must call this function.
Traces gatherTraces(runtime::World &world,
                    const std::vector<runtime::InstructionRun> &mine);

/// Prints lines for people and writes records for programs, on one rank.
class RunWatch {
public:
  /// Opens the file of the trace, and reads the prediction.
  /// \throws BadInput if the file cannot be written
  RunWatch(const RunFlags &theFlags, std::ostream &o, std::ostream &e);

  void begin(const runtime::Plan &plan, bool processes,
             const runtime::TrainOptions &train);
  /// Starts the logs after `step`, and drops later steps of an earlier run.
  /// This function is called once, before any step.
  /// \throws BadInput if a log cannot be written
  void openLogs(std::int64_t step);
  /// Prints the memory of the buffers that NCCL registers, whose sizes are
  /// rounded up. Prints nothing if no buffer is registered.
  void printRegistered(const runtime::Rounded &registered);
  void print(const std::string &line);
  void warn(const std::string &line);
  /// Logs a step. Prints a progress line every `--every` steps, and for the
  /// first step, the last step and steps with a validation.
  void logStep(const runtime::StepRecord &record);
  /// \param rank0   times of rank 0
  /// \param traces  by rank; empty if no step was traced
  void end(const runtime::Plan &plan, const runtime::TrainTimes &rank0,
           const MeanTimes &means, const Traces &traces);

private:
  const RunFlags &flags;
  std::ostream &out, &err;
  std::optional<runtime::RunLog> log; ///< set once the first step is known
  std::optional<runtime::LogFile> trace;
  std::optional<Prediction> prediction; ///< empty if missing or unreadable
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_WATCH_H

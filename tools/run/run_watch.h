//===- run_watch.h - What is seen of a run ----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_WATCH_H
#define MTPLAN_TOOLS_RUN_RUN_WATCH_H

#include <iosfwd>

#include "runtime/executor/train.h"
#include "runtime/metrics/run_log.h"
#include "tools/run/prediction.h"
#include "tools/run/run_flags.h"
#include "tools/run/run_times.h"

namespace mtplan::tools {

/// Lines for people and records for programs, on one rank.
class RunWatch {
public:
  /// \throws BadInput if something cannot be written from the start
  RunWatch(const RunFlags &theFlags, std::ostream &o, std::ostream &e);

  void begin(const runtime::Plan &plan, bool processes,
             const runtime::TrainOptions &train);
  /// Once, before any step: the run begins behind this one, and what logs have
  /// of later ones is over.
  /// \throws BadInput if one cannot be written
  void openLogs(std::int64_t step);
  /// Nothing, where memory of collectives is as the plan has it.
  void tellOf(const runtime::Rounded &registered);
  void say(const std::string &line);
  void warn(const std::string &line);
  void see(const runtime::StepRecord &record);
  /// \param rank0   times of rank 0
  /// \param traces  by rank; empty: there was none to keep
  void end(const runtime::Plan &plan, const runtime::TrainTimes &rank0,
           const MeanTimes &means, const Traces &traces);

private:
  void readPrediction();

  const RunFlags &flags;
  std::ostream &out, &err;
  std::optional<runtime::RunLog> log; ///< once the first step is known
  std::optional<runtime::LogFile> trace;
  std::optional<Prediction> prediction; ///< none: mtplan left none
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_WATCH_H

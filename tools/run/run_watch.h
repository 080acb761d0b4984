//===- run_watch.h - What is seen of a run ----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_WATCH_H
#define MTPLAN_TOOLS_RUN_RUN_WATCH_H

#include <iosfwd>

#include "runtime/executor/train.h"
#include "runtime/metrics/run_log.h"
#include "tools/run/run_flags.h"

namespace mtplan::tools {

/// Lines for people and records for programs, on one rank.
class RunWatch {
public:
  /// \throws BadInput if something cannot be written from the start
  RunWatch(const RunFlags &theFlags, std::ostream &o, std::ostream &e);

  void begin(const runtime::Plan &plan, bool processes,
             const runtime::TrainOptions &train);
  void see(const runtime::StepRecord &record);
  void end(const runtime::TrainTimes &times);

private:
  const RunFlags &flags;
  std::ostream &out, &err;
  std::optional<runtime::RunLog> log;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_WATCH_H

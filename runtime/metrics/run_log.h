//===- run_log.h - Everything that is written of a run's steps --*- C++ -*-===//
//
// JSON lines and TensorBoard events as asked for. What goes wrong with either
// while the run goes on is told, not thrown (log_file.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_METRICS_RUN_LOG_H
#define MTPLAN_RUNTIME_METRICS_RUN_LOG_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/metrics/log_file.h"
#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {

struct RunLogOptions {
  std::string linesPath;    ///< of the JSON lines; "": none
  std::string eventsFolder; ///< of TensorBoard, made if missing; "": none
  /// Last step of the checkpoint that the run goes on from; 0: from the start,
  /// which replaces the lines.
  std::int64_t resumedAt = 0;
};

class RunLog {
public:
  /// \throws std::runtime_error if something cannot be opened or begun
  explicit RunLog(const RunLogOptions &options);

  /// \param wallTime  seconds since 1970
  /// Returns what there is to warn of: of each file its first lost record.
  std::vector<std::string> write(const StepRecord &record, double wallTime);

  /// What was lost in all, a sentence for each file.
  std::vector<std::string> problems() const;

private:
  std::optional<LogFile> lines, events;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_RUN_LOG_H

//===- run_log.h - The logs of a run ----------------------------*- C++ -*-===//
//
// Every record is written immediately, completely or not at all, so that the
// log can be read while it grows and never ends in a partial record.
//
// Training continues when the disk is full, because a run is worth more than
// its log. A record that cannot be written completely is removed from the file
// and lost; later records are written if they can be. `problem` describes the
// failures, so that the command can warn at the first one and at the end.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_METRICS_RUN_LOG_H
#define MTPLAN_RUNTIME_METRICS_RUN_LOG_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {

/// Writes a log file; write errors do not stop training.
class LogFile {
public:
  enum class Mode { replace, append };

  /// \throws std::runtime_error if the file cannot be opened, because before
  ///         the first step an error loses no work
  LogFile(const std::string &path, Mode mode);
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// Appends a record. Returns false if it was lost.
  bool write(std::string_view record);

  const std::string &path() const { return name; }
  /// Returns the number of lost records.
  std::int64_t lost() const { return lostRecords; }
  /// Returns "metrics.jsonl: 3 records lost: No space left on device"; "" if
  /// none was lost.
  std::string problem() const;

private:
  const std::string name;
  int handle = -1;
  std::int64_t size = 0; ///< bytes up to the end of the last complete record
  bool torn = false;     ///< a partial record could not be truncated
  std::int64_t lostRecords = 0;
  std::string reason; ///< error of the first lost record
};

/// Names the logs of a run.
struct RunLogOptions {
  std::string linesPath;    ///< file of JSON lines; "": none
  std::string eventsFolder; ///< folder for TensorBoard; "": none
  /// Holds the step of the checkpoint from which the run resumes; the lines of
  /// later steps are removed. It is 0 for a new run, which replaces the file.
  std::int64_t resumedAt = 0;
};

/// Writes the JSON lines and the TensorBoard events of a run, if requested.
/// Failures during the run are reported and not thrown.
class RunLog {
public:
  /// \throws std::runtime_error if a log cannot be opened or started
  explicit RunLog(const RunLogOptions &options);

  /// Writes a step's record. Returns a warning for each file that has just lost
  /// its first record.
  /// \param wallTime  seconds since 1970
  std::vector<std::string> write(const StepRecord &record, double wallTime);

  /// Returns a sentence for each file with lost records.
  std::vector<std::string> problems() const;

private:
  std::optional<LogFile> lines, events;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_RUN_LOG_H

//===- run_log.h - The logs of a run ----------------------------*- C++ -*-===//
//
// Every record is written immediately, and completely or not at all. The log
// can therefore be read while it grows, and never ends in a partial record.
//
// Training continues when the disk is full, because the run is more valuable
// than its log. A record that cannot be written completely is removed from the
// file and lost. Later records are written if there is space again. problem()
// describes the failures, so that the command can warn at the first one and at
// the end.
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

class LogFile {
public:
  enum class Mode { replace, append };

  /// Throws on an error, because no training work is lost before the first
  /// step.
  /// \throws std::runtime_error if the file cannot be opened
  LogFile(const std::string &path, Mode mode);
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// Appends a record. Returns false if the record was lost.
  bool write(std::string_view record);

  const std::string &path() const { return name; }
  std::int64_t lost() const { return lostRecords; }
  /// Returns "metrics.jsonl: 3 records lost: No space left on device", or "" if
  /// no record was lost.
  std::string problem() const;

private:
  const std::string name;
  int handle = -1;
  std::int64_t size = 0; ///< bytes up to the end of the last complete record
  bool torn = false;     ///< a partial record could not be truncated
  std::int64_t lostRecords = 0;
  std::string reason; ///< error of the first lost record
};

struct RunLogOptions {
  std::string linesPath;    ///< file of JSON lines; "": none
  std::string eventsFolder; ///< folder for TensorBoard; "": none
  /// Holds the step of the checkpoint from which the run resumes. The lines of
  /// later steps are removed. A new run has 0 here and replaces the file.
  std::int64_t resumedAt = 0;
};

/// Writes the JSON lines and the TensorBoard events of a run, if requested.
/// Failures during the run are returned, not thrown.
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

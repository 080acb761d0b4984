//===- run_log.h - The logs of a run ----------------------------*- C++ -*-===//
//
// Every record is written at once, whole or not at all, so that the log can be
// read while it grows and never ends in half a record.
//
// When the disk is full, training goes on, because a run is worth more than its
// log. A record that cannot be written is cut off again and lost; the next one
// tries anew. `problem` describes the failures, so that the command can warn at
// the first one and once more at the end.
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

/// A log that training outlives.
class LogFile {
public:
  enum class Mode { replace, append };

  /// \throws std::runtime_error if the file cannot be opened: before the first
  ///         step there is time to mend it
  LogFile(const std::string &path, Mode mode);
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// Returns false if the record was lost.
  bool write(std::string_view record);

  const std::string &path() const { return name; }
  std::int64_t lost() const { return lostRecords; }
  /// Returns "metrics.jsonl: 3 records lost: No space left on device"; "" if
  /// none was lost.
  std::string problem() const;

private:
  const std::string name;
  int handle = -1;
  std::int64_t size = 0; ///< up to the end of the last whole record
  bool torn = false;     ///< half a record could not be cut off
  std::int64_t lostRecords = 0;
  std::string reason; ///< of the first
};

struct RunLogOptions {
  std::string linesPath;    ///< of the JSON lines; "": none
  std::string eventsFolder; ///< of TensorBoard, made if missing; "": none
  /// Last step of the checkpoint from which the run resumes. A run from the
  /// start has 0 and replaces the lines.
  std::int64_t resumedAt = 0;
};

/// The JSON lines and TensorBoard events of a run, as far as they are asked
/// for. Failures during the run are reported and not thrown.
class RunLog {
public:
  /// \throws std::runtime_error if something cannot be opened or begun
  explicit RunLog(const RunLogOptions &options);

  /// Returns a warning for each file that has just lost its first record.
  /// \param wallTime  seconds since 1970
  std::vector<std::string> write(const StepRecord &record, double wallTime);

  /// Returns a sentence for each file with lost records.
  std::vector<std::string> problems() const;

private:
  std::optional<LogFile> lines, events;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_RUN_LOG_H

//===- log_file.h - A log that training outlives ----------------*- C++ -*-===//
//
// Every record is written at once, whole or not at all, so that the log can be
// read while it grows and never ends in half a record.
//
// When the disk is full, training goes on: a run is worth more than its log. A
// record that cannot be written is cut off again and lost; the next one tries
// anew. `problem` says what happened from the first failure on, so that the
// command can warn once when it does and once more at the end.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_METRICS_LOG_FILE_H
#define MTPLAN_RUNTIME_METRICS_LOG_FILE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace mtplan::runtime {

class LogFile {
public:
  enum class Mode { replace, append };

  /// \throws std::runtime_error if the file cannot be opened: before the first
  ///         step there is time to mend it
  LogFile(const std::string &path, Mode mode);
  ~LogFile();
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;

  /// False if the record was lost.
  bool write(std::string_view record);

  const std::string &path() const { return name; }
  std::int64_t lost() const { return lostRecords; }
  /// "metrics.jsonl: 3 records lost: No space left on device"; "" if none.
  std::string problem() const;

private:
  const std::string name;
  int handle = -1;
  std::int64_t size = 0; ///< up to the end of the last whole record
  bool torn = false;     ///< half a record could not be cut off
  std::int64_t lostRecords = 0;
  std::string reason; ///< of the first
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_LOG_FILE_H

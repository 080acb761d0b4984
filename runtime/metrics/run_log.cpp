//===- run_log.cpp - Everything that is written of a run's steps ----------===//

#include "runtime/metrics/run_log.h"

#include <array>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include <unistd.h>

#include "runtime/metrics/event_records.h"
#include "runtime/metrics/step_lines.h"

namespace mtplan::runtime {
namespace {

std::string hostName() {
  std::array<char, 256> name = {};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data()
                                                          : "unknown";
}

} // namespace

RunLog::RunLog(const RunLogOptions &options) {
  if (!options.linesPath.empty()) {
    if (options.resumedAt > 0)
      cutStepsAfter(options.linesPath, options.resumedAt);
    lines.emplace(options.linesPath, options.resumedAt > 0
                                         ? LogFile::Mode::append
                                         : LogFile::Mode::replace);
  }
  if (options.eventsFolder.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(options.eventsFolder, error);
  if (error)
    throw std::runtime_error(options.eventsFolder +
                             ": cannot be made: " + error.message());
  const std::time_t now = std::time(nullptr);
  events.emplace(options.eventsFolder + "/" +
                     eventFileName(now, hostName(), ::getpid()),
                 LogFile::Mode::append);
  // A file that does not begin so is none of TensorBoard's.
  if (!events->write(versionRecord(static_cast<double>(now))))
    throw std::runtime_error(events->problem());
}

std::vector<std::string> RunLog::write(const StepRecord &record,
                                       double wallTime) {
  std::vector<std::string> warnings;
  const auto put = [&](std::optional<LogFile> &file, const std::string &text) {
    if (file && !file->write(text) && file->lost() == 1)
      warnings.push_back(file->problem() + "; training goes on");
  };
  if (lines)
    put(lines, jsonLine(record));
  if (events)
    put(events, stepRecords(wallTime, record));
  return warnings;
}

std::vector<std::string> RunLog::problems() const {
  std::vector<std::string> all;
  for (const std::optional<LogFile> *file : {&lines, &events})
    if (*file && (*file)->lost() > 0)
      all.push_back((*file)->problem());
  return all;
}

} // namespace mtplan::runtime

//===- run_log.cpp - The logs of a run ------------------------------------===//

#include "runtime/metrics/run_log.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {

LogFile::LogFile(const std::string &path, Mode mode) : name(path) {
  handle = ::open(path.c_str(),
                  O_WRONLY | O_CREAT | O_CLOEXEC |
                      (mode == Mode::replace ? O_TRUNC : 0),
                  0666);
  if (handle < 0)
    throw std::runtime_error(path +
                             ": cannot be written: " + std::strerror(errno));
  struct stat status = {};
  if (::fstat(handle, &status) == 0 && S_ISREG(status.st_mode))
    size = ::lseek(handle, 0, SEEK_END);
}

LogFile::~LogFile() { ::close(handle); }

bool LogFile::write(std::string_view record) {
  // A partial record that write() could not remove is truncated first.
  if (torn && ::ftruncate(handle, size) == 0 &&
      ::lseek(handle, size, SEEK_SET) == size)
    torn = false;
  int error = torn ? EIO : 0;
  for (std::size_t done = 0; error == 0 && done < record.size();) {
    const ssize_t written =
        ::write(handle, record.data() + done, record.size() - done);
    if (written >= 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      error = errno;
  }
  if (error == 0) {
    size += static_cast<std::int64_t>(record.size());
    return true;
  }
  if (lostRecords++ == 0)
    reason = std::strerror(error);
  struct stat status = {};
  if (::fstat(handle, &status) == 0 && S_ISREG(status.st_mode))
    torn = ::ftruncate(handle, size) != 0 ||
           ::lseek(handle, size, SEEK_SET) != size;
  return false;
}

std::string LogFile::problem() const {
  if (lostRecords == 0)
    return "";
  return name + ": " + std::to_string(lostRecords) +
         (lostRecords == 1 ? " record" : " records") + " lost: " + reason;
}

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
  // TensorBoard reads only files that begin with this record.
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

//===- log_file.cpp - A log that training outlives ------------------------===//

#include "runtime/metrics/log_file.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
  // Half a record that is still there is overwritten or cut off first.
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

} // namespace mtplan::runtime

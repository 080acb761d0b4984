//===- whole_file.cpp - A file that is there whole or not at all ----------===//

#include "runtime/data/whole_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/data/data_error.h"

namespace mtplan::runtime {
namespace {

constexpr std::size_t kBuffered = std::size_t{1} << 20;

} // namespace

WholeFile::WholeFile(const std::string &thePath)
    : path(thePath),
      temporary(thePath + ".unfinished." + std::to_string(::getpid())) {
  handle =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (handle < 0)
    fail("cannot be written");
}

WholeFile::~WholeFile() {
  if (handle < 0)
    return;
  ::close(handle);
  ::unlink(temporary.c_str());
}

void WholeFile::fail(const char *what) const {
  throw DataError(path, std::string(what) + ": " + std::strerror(errno));
}

void WholeFile::write(const void *data, std::size_t bytes) {
  buffer.append(static_cast<const char *>(data), bytes);
  if (buffer.size() >= kBuffered)
    flush();
}

void WholeFile::flush() {
  for (std::size_t done = 0; done < buffer.size();) {
    const ssize_t written =
        ::write(handle, buffer.data() + done, buffer.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("cannot be written");
    done += static_cast<std::size_t>(written);
  }
  buffer.clear();
}

void WholeFile::finish() {
  flush();
  if (::fsync(handle) != 0)
    fail("cannot be written");
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("cannot be put in place");
  ::close(handle);
  handle = -1;
}

} // namespace mtplan::runtime

//===- durable_file.cpp - File writes that survive a crash ----------------===//

#include "runtime/checkpoint/durable_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sync_file.h"

namespace mtplan::runtime {

namespace {

constexpr std::int64_t kBatch = std::int64_t{16} << 20;

[[noreturn]] void fail(const char *call, const std::string &path, int error) {
  throw CheckpointError(path + ": cannot " + call + ": " +
                        std::generic_category().message(error));
}

// Repeats a system call while signals interrupt it.
template <typename Call> int whole(Call call) {
  for (;;)
    if (const int result = call(); result >= 0 || errno != EINTR)
      return result;
}

int openWhole(const std::string &path, int flags) {
  return whole([&] { return open(path.c_str(), flags | O_CLOEXEC, 0666); });
}

class Handle {
public:
  Handle(const char *call, const std::string &path, int flags)
      : number(openWhole(path, flags)) {
    if (number < 0)
      fail(call, path, errno);
  }
  ~Handle() { close(number); }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  const int number;
};

std::string parentOf(const std::string &path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

} // namespace

DurableFile::DurableFile(const std::string &thePath, Open how) : path(thePath) {
  const int flags =
      how == Open::create ? O_WRONLY | O_CREAT | O_TRUNC : O_WRONLY;
  handle = openWhole(path, flags);
  if (handle < 0)
    fail(how == Open::create ? "create it" : "open it to write", path, errno);
}

DurableFile::~DurableFile() {
  if (handle >= 0)
    close(handle);
}

void DurableFile::reserve(std::int64_t bytes) {
  int error = 0;
  do
    error = bytes > 0 ? posix_fallocate(handle, 0, bytes) : 0;
  while (error == EINTR);
  // File systems without preallocation allocate while they write.
  if (error == EOPNOTSUPP || error == EINVAL)
    error = whole([&] { return ftruncate(handle, bytes); }) == 0 ? 0 : errno;
  if (error != 0)
    fail(("reserve " + std::to_string(bytes) + " bytes for it").c_str(), path,
         error);
}

void DurableFile::writeAt(std::int64_t offset, const void *data,
                          std::size_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    const ssize_t wrote =
        pwrite(handle, next, std::min<std::size_t>(bytes, kBatch), offset);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0)
      fail(("write " + std::to_string(bytes) + " bytes at " +
            std::to_string(offset))
               .c_str(),
           path, wrote < 0 ? errno : ENOSPC);
    next += wrote;
    offset += wrote;
    bytes -= static_cast<std::size_t>(wrote);
    waiting += wrote;
    // Starts write-back in the background, so that fsync has little left to do.
    // Ignores errors, because fsync reports them as well.
    if (waiting >= kBatch) {
      sync_file_range(handle, 0, 0, SYNC_FILE_RANGE_WRITE);
      waiting = 0;
    }
  }
}

void DurableFile::finish() {
  if (const int error = base::syncOpen(handle); error != 0)
    fail("bring it to the disk (fsync)", path, error);
  const int closed = close(handle);
  handle = -1;
  if (closed != 0 && errno != EINTR)
    fail("close it", path, errno);
}

void makeFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    fail("make the folder", path, error.value());
}

void syncFolder(const std::string &path) {
  if (const int error = base::syncFolder(path); error != 0)
    fail("bring the folder to the disk (fsync)", path, error);
}

void replaceFile(const std::string &path, const std::string &text) {
  const std::string next = path + kNext;
  try {
    DurableFile file(next, DurableFile::Open::create);
    file.writeAt(0, text.data(), text.size());
    file.finish();
    if (std::rename(next.c_str(), path.c_str()) != 0)
      fail(("rename " + next + " to it").c_str(), path, errno);
  } catch (const CheckpointError &) {
    unlink(next.c_str()); // if this fails, the next run removes the file
    throw;
  }
  syncFolder(parentOf(path));
}

void renameFolder(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail(("rename " + from + " to it").c_str(), to, errno);
  syncFolder(parentOf(to));
}

void removeFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error)
    fail("remove it", path, error.value());
}

void readAt(const std::string &path, std::int64_t offset, void *data,
            std::size_t bytes) {
  const Handle file("open it", path, O_RDONLY);
  char *next = static_cast<char *>(data);
  while (bytes > 0) {
    const ssize_t got = pread(file.number, next, bytes, offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      fail("read it", path, errno);
    if (got == 0)
      throw CheckpointError(path + ": ends at byte " + std::to_string(offset) +
                            ", " + std::to_string(bytes) +
                            " bytes before what it should have");
    next += got;
    offset += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

Digest digestOfFile(const std::string &path, std::int64_t offset,
                    std::int64_t bytes) {
  return digestOfPieces(bytes,
                        [&](std::int64_t at, char *to, std::size_t count) {
                          readAt(path, offset + at, to, count);
                        });
}

} // namespace mtplan::runtime

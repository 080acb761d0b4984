//===- files.cpp - Reading and writing of files ---------------------------===//

#include "runtime/data/files.h"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sync_file.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static_assert(std::endian::native == std::endian::little,
              "the formats are little-endian and are read without conversion");

MappedFile::MappedFile(const std::string &path) : name(path) {
  auto refuse = [&](const std::string &why) {
    if (handle >= 0)
      ::close(handle);
    throw DataError(name, "cannot be read: " + why);
  };
  do
    handle = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (handle < 0 && errno == EINTR);
  if (handle < 0)
    refuse(std::strerror(errno));
  struct stat status = {};
  if (::fstat(handle, &status) != 0)
    refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    refuse(S_ISDIR(status.st_mode) ? "it is a directory"
                                   : "it is not a regular file");
  bytes = status.st_size;
  if (bytes == 0)
    return; // mmap rejects an empty range
  void *mapped = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ,
                        MAP_SHARED, handle, 0);
  if (mapped == MAP_FAILED)
    refuse(std::strerror(errno));
  base = static_cast<const std::byte *>(mapped);
}

MappedFile::~MappedFile() {
  if (base)
    ::munmap(const_cast<std::byte *>(base), static_cast<std::size_t>(bytes));
  if (handle >= 0)
    ::close(handle);
}

void MappedFile::check(std::int64_t offset, std::int64_t count) const {
  // The comparison cannot overflow, even for values of a corrupt header.
  if (offset < 0 || count < 0 || offset > bytes || count > bytes - offset)
    throw DataError(name, offset,
                    "needs " + std::to_string(count) +
                        " bytes, but the file ends at " +
                        std::to_string(bytes));
}

const std::byte *MappedFile::at(std::int64_t offset, std::int64_t count) const {
  check(offset, count);
  return base + offset;
}

void MappedFile::copy(std::int64_t offset, std::int64_t count, void *to) const {
  check(offset, count);
  char *next = static_cast<char *>(to);
  for (const std::int64_t end = offset + count; offset < end;) {
    const ssize_t got =
        ::pread(handle, next, static_cast<std::size_t>(end - offset), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw DataError(name, offset,
                      std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0)
      throw DataError(name, offset,
                      "the file ends here, it had " + std::to_string(bytes) +
                          " bytes when it was opened");
    next += got;
    offset += got;
  }
}

void MappedFile::confirmSize() const {
  struct stat status = {};
  if (::fstat(handle, &status) != 0)
    throw DataError(name,
                    std::string("cannot be read: ") + std::strerror(errno));
  if (status.st_size < bytes)
    throw DataError(name, "had " + std::to_string(bytes) +
                              " bytes when it was opened, has " +
                              std::to_string(status.st_size) + " now");
}

std::string firstBytes(const std::string &path, std::size_t most) {
  std::string start(most, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  return start;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

constexpr std::size_t kBuffered = std::size_t{1} << 20; // bytes

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
  if (base::syncOpen(handle) != 0)
    fail("cannot be written");
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    fail("cannot be put in place");
  ::close(handle);
  handle = -1;
  if ((errno = base::syncFolderOf(path)) != 0)
    fail("its folder cannot be synced");
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {

namespace fs = std::filesystem;

/// Returns a file's absolute path without links. The file need not exist.
fs::path placeOf(fs::path name) {
  constexpr int kMostLinks = 40; // the limit of Linux
  std::error_code none;
  for (int i = 0; i < kMostLinks && fs::is_symlink(name, none); ++i)
    name = name.parent_path() / fs::read_symlink(name, none);
  name = fs::absolute(name, none);
  const fs::path whole = fs::weakly_canonical(name, none);
  return whole.empty() ? name.lexically_normal() : whole;
}

} // namespace

bool isSameFile(const std::string &one, const std::string &other) {
  std::error_code none;
  if (one.empty() || other.empty())
    return false;
  if (fs::exists(one, none))
    return fs::is_regular_file(one, none) && fs::equivalent(one, other, none);
  return placeOf(one) == placeOf(other);
}

void NamedFiles::read(const std::string &by, const std::string &file) {
  named.emplace_back(by, file);
}

std::string NamedFiles::write(const std::string &by, const std::string &file) {
  if (file == "-")
    return "means standard output for other flags, but names a file here; give "
           "it another name";
  std::string against;
  for (const auto &[other, name] : named)
    if (against.empty() && isSameFile(file, name))
      against = "is what " + other + " names; give it another name";
  named.emplace_back(by, file);
  return against;
}

} // namespace mtplan::runtime

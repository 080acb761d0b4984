//===- mapped_file.cpp - A file in memory, read only ----------------------===//

#include "runtime/data/mapped_file.h"

#include <bit>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mtplan::runtime {

static_assert(std::endian::native == std::endian::little,
              "the formats are little-endian, and read as they lie");

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
                                   : "it is no regular file");
  bytes = status.st_size;
  if (bytes == 0)
    return; // nothing to map
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
  // Written so that no sum overflows, whatever a corrupt header says.
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

} // namespace mtplan::runtime

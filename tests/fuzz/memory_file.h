//===- memory_file.h - A file in memory -------------------------*- C++ -*-===//

#ifndef MTPLAN_TESTS_FUZZ_MEMORY_FILE_H
#define MTPLAN_TESTS_FUZZ_MEMORY_FILE_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace mtplan {

class MemoryFile {
public:
  MemoryFile(const std::uint8_t *data, std::size_t size)
      : handle(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (handle < 0 || ::write(handle, data, size) != static_cast<ssize_t>(size))
      std::abort();
  }
  ~MemoryFile() { ::close(handle); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(handle); }

private:
  int handle;
};

} // namespace mtplan

#endif // MTPLAN_TESTS_FUZZ_MEMORY_FILE_H

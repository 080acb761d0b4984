//===- mapped_file.h - A file in memory, read only --------------*- C++ -*-===//
//
// A corpus is far larger than memory and read at random places: it is mapped,
// and the system keeps the pages that are used. Every access is checked against
// the size; a file that shrinks under a run is found by confirmSize before it
// is touched. Whoever must outlive that it shrinks, or that its disk breaks,
// meanwhile copies what it needs: to touch a page that cannot be had ends the
// process.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_MAPPED_FILE_H
#define MTPLAN_RUNTIME_DATA_MAPPED_FILE_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/data/data_error.h"

namespace mtplan::runtime {

class MappedFile {
public:
  /// \throws DataError if it cannot be read or is no regular file
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept
      : name(std::move(other.name)), handle(std::exchange(other.handle, -1)),
        base(std::exchange(other.base, nullptr)),
        bytes(std::exchange(other.bytes, 0)) {}
  MappedFile &operator=(MappedFile &&) = delete;

  const std::string &path() const { return name; }
  std::int64_t size() const { return bytes; }

  /// `count` bytes from `offset` on.
  /// \throws DataError if the file ends before
  const std::byte *at(std::int64_t offset, std::int64_t count) const;

  /// The same into `to`, read from the file and not from its pages.
  /// \throws DataError if the file ends before, or ends there by now, or cannot
  ///         be read
  void copy(std::int64_t offset, std::int64_t count, void *to) const;

  /// One little-endian number at any offset.
  template <typename T> T read(std::int64_t offset) const {
    T value;
    std::memcpy(&value, at(offset, sizeof(T)), sizeof(T));
    return value;
  }

  /// \throws DataError if the file is shorter now than when it was opened
  void confirmSize() const;

private:
  void check(std::int64_t offset, std::int64_t count) const;

  std::string name;
  int handle = -1;
  const std::byte *base = nullptr;
  std::int64_t bytes = 0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_MAPPED_FILE_H

//===- files.h - Reading and writing of files -------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_DATA_FILES_H
#define MTPLAN_RUNTIME_DATA_FILES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mtplan::runtime {

/// Reports an unusable file. The message starts with the file and, if known,
/// the byte: "corpus.idx: byte 34: ...".
class DataError : public std::runtime_error {
public:
  DataError(const std::string &file, const std::string &what)
      : std::runtime_error(file + ": " + what) {}
  DataError(const std::string &file, std::int64_t byte, const std::string &what)
      : std::runtime_error(file + ": byte " + std::to_string(byte) + ": " +
                           what) {}
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Maps a file into memory, because a corpus may be larger than memory and is
/// read at random offsets. Every access is checked against the size. If the
/// file shrinks while it is open, or the disk fails, copy() throws DataError,
/// whereas a read of the mapping ends the process with SIGBUS.
class MappedFile {
public:
  /// \throws DataError if the file cannot be read or is not a regular file
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept
      : name(std::move(other.name)), handle(std::exchange(other.handle, -1)),
        base(std::exchange(other.base, nullptr)),
        bytes(std::exchange(other.bytes, 0)) {}
  MappedFile &operator=(MappedFile &&) = delete;

  const std::string &path() const { return name; }
  std::int64_t size() const { return bytes; }

  /// Returns a pointer into the mapping to `count` bytes from `offset` on.
  /// \throws DataError if the range exceeds size()
  const std::byte *at(std::int64_t offset, std::int64_t count) const;

  /// Copies `count` bytes from `offset` on to `to` by system calls.
  /// \throws DataError if the range exceeds size(), or the file has shrunk or
  /// cannot be read
  void copy(std::int64_t offset, std::int64_t count, void *to) const;

  /// Returns the little-endian number at an offset, which may be unaligned.
  template <typename T> T read(std::int64_t offset) const {
    T value;
    std::memcpy(&value, at(offset, sizeof(T)), sizeof(T));
    return value;
  }

  /// \throws DataError if the file has shrunk
  void confirmSize() const;

private:
  void check(std::int64_t offset, std::int64_t count) const;

  std::string name;
  int handle = -1;
  const std::byte *base = nullptr;
  std::int64_t bytes = 0;
};

/// Returns the first bytes of a file, at most `most`; "" if it cannot be read.
std::string firstBytes(const std::string &path, std::size_t most);

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Writes a file completely or not at all. Data go to a temporary file in the
/// same folder, which finish() syncs to the disk and renames. A reader never
/// sees a partial file, and an interrupted writer leaves the old file.
class WholeFile {
public:
  /// \throws DataError if the temporary file cannot be created
  explicit WholeFile(const std::string &path);
  ~WholeFile();
  WholeFile(const WholeFile &) = delete;
  WholeFile &operator=(const WholeFile &) = delete;

  /// \throws DataError if the disk is full or fails
  void write(const void *data, std::size_t bytes);
  /// Syncs the data, renames the file to its final name, and syncs the folder.
  void finish();

private:
  void flush();
  [[noreturn]] void fail(const char *what) const;

  const std::string path;
  const std::string temporary;
  int handle = -1;
  std::string buffer;
};

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Returns whether writing to one path would destroy the file at the other
/// path. Neither file need exist yet.
bool isSameFile(const std::string &one, const std::string &other);

/// Collects the files of one command, with the option or argument that names
/// each. Detects outputs that would overwrite an input or another output.
class NamedFiles {
public:
  /// Adds an input, whose path may be "". `by` is the option or argument that
  /// names the input.
  void read(const std::string &by, const std::string &file);
  /// Adds an output. Returns "" or, if the path is "-" or already used, an
  /// error such as "is what --load names; give it another name".
  std::string write(const std::string &by, const std::string &file);

private:
  std::vector<std::pair<std::string, std::string>> named; ///< option, file
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_FILES_H

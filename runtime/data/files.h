//===- files.h - Files that are read and written ----------------*- C++ -*-===//

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

/// Reports data that cannot be used. what() starts with the file, then the byte
/// if there is one: "corpus.idx: byte 34: ...".
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

/// A file that is mapped into memory, because a corpus is far larger than
/// memory and read at random places. Every access is checked against the size,
/// and confirmSize finds a file that has shrunk before it is touched. A reader
/// that must survive a file that shrinks meanwhile, or a broken disk, uses
/// copy(), because a missing page ends the process.
class MappedFile {
public:
  /// \throws DataError if the file cannot be read or is no regular file
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(MappedFile &&other) noexcept
      : name(std::move(other.name)), handle(std::exchange(other.handle, -1)),
        base(std::exchange(other.base, nullptr)),
        bytes(std::exchange(other.bytes, 0)) {}
  MappedFile &operator=(MappedFile &&) = delete;

  const std::string &path() const { return name; }
  std::int64_t size() const { return bytes; }

  /// Returns `count` bytes from `offset` on.
  /// \throws DataError if the file ends before
  const std::byte *at(std::int64_t offset, std::int64_t count) const;

  /// Copies the same bytes to `to`, read from the file and not from its pages.
  /// \throws DataError if the file ends before, or has shrunk, or cannot be
  /// read
  void copy(std::int64_t offset, std::int64_t count, void *to) const;

  /// Returns one little-endian number at any offset.
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

/// Returns the first bytes of a file, at most `most`; "" if it cannot be read.
std::string firstBytes(const std::string &path, std::size_t most);

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// A file that exists completely or not at all. The data go to a temporary name
/// beside the file, which is renamed once all bytes are on the disk. So a
/// reader never sees half of the file, and an interrupted writer leaves the old
/// one.
class WholeFile {
public:
  /// \throws DataError if the temporary file cannot be created
  explicit WholeFile(const std::string &path);
  /// Removes an unfinished file.
  ~WholeFile();
  WholeFile(const WholeFile &) = delete;
  WholeFile &operator=(const WholeFile &) = delete;

  /// \throws DataError if the disk is full or fails
  void write(const void *data, std::size_t bytes);
  /// Gives the file its name.
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

/// Returns whether both are names of one regular file, which need not exist
/// yet, so that writing the one destroys the other.
bool isSameFile(const std::string &one, const std::string &other);

/// The files of one command, each with the option or argument that names it. No
/// file that is read may be overwritten, and none written twice.
class NamedFiles {
public:
  /// \param file  a file that is read, or ""
  void read(const std::string &by, const std::string &file);
  /// \param file  a file that is written, or ""
  /// \return the objection, to follow the file's name in a message: "is what
  ///         --load names; give it another name"; "" if there is none
  std::string write(const std::string &by, const std::string &file);

private:
  std::vector<std::pair<std::string, std::string>> named; ///< option, file
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_FILES_H

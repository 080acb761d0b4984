//===- whole_file.h - A file that is there whole or not at all --*- C++ -*-===//
//
// Writes to a temporary name beside the file, and renames it once all bytes are
// on the disk: who reads the file never sees half of it, and whoever was
// interrupted leaves the old one.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_DATA_WHOLE_FILE_H
#define MTPLAN_RUNTIME_DATA_WHOLE_FILE_H

#include <cstddef>
#include <string>

namespace mtplan::runtime {

class WholeFile {
public:
  /// \throws DataError if the temporary file cannot be made
  explicit WholeFile(const std::string &path);
  /// Removes what was not finished.
  ~WholeFile();
  WholeFile(const WholeFile &) = delete;
  WholeFile &operator=(const WholeFile &) = delete;

  /// \throws DataError if the disk is full or fails
  void write(const void *data, std::size_t bytes);
  /// Puts the file in its place.
  void finish();

private:
  void flush();
  [[noreturn]] void fail(const char *what) const;

  const std::string path;
  const std::string temporary;
  int handle = -1;
  std::string buffer;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_DATA_WHOLE_FILE_H

//===- durable_file.h - Writing that survives a crash -----------*- C++ -*-===//
//
// Data is on the disk when a call says so, not only in the system's memory: a
// rename without fsync may leave an empty file (Pillai et al., OSDI 2014).
// Calls that a signal interrupts, or that write less than asked, continue.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CHECKPOINT_DURABLE_FILE_H
#define MTPLAN_RUNTIME_CHECKPOINT_DURABLE_FILE_H

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "runtime/data/digest.h"

namespace mtplan::runtime {

/// A checkpoint that cannot be written or read. what() names the call or the
/// tensor, the file, and the system's reason.
struct CheckpointError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file that is written. All methods throw CheckpointError.
class DurableFile {
public:
  enum class Open { create, existing };
  DurableFile(const std::string &path, Open how);
  ~DurableFile();
  DurableFile(const DurableFile &) = delete;
  DurableFile &operator=(const DurableFile &) = delete;

  /// Allocates bytes on the disk, so that a full disk is found before the ranks
  /// write.
  void reserve(std::int64_t bytes);
  void writeAt(std::int64_t offset, const void *data, std::size_t bytes);
  /// Brings all data to the disk and closes the file. Without this call data
  /// may be lost.
  void finish();

private:
  std::string path;
  int handle = -1;
  std::int64_t waiting = 0; ///< bytes that the disk has not been given yet
};

/// Creates a folder with its parents.
void makeFolder(const std::string &path);
/// Brings the names in a folder to the disk.
void syncFolder(const std::string &path);
/// The suffix of a file that replaceFile may leave behind if the process dies.
inline constexpr const char *kNext = ".new";
/// Replaces a file atomically: a reader finds the old text or the new one.
void replaceFile(const std::string &path, const std::string &text);
/// Renames a folder durably: it also syncs the parent.
void renameFolder(const std::string &from, const std::string &to);
/// Removes a folder or a file, if it exists.
void removeFolder(const std::string &path);

/// Reads bytes of a file from `offset` on.
/// \throws CheckpointError if the file cannot be read or ends before
void readAt(const std::string &path, std::int64_t offset, void *data,
            std::size_t bytes);

/// Digests `bytes` bytes of a file, from `offset` on.
/// \throws CheckpointError if the file cannot be read or ends before
Digest digestOfFile(const std::string &path, std::int64_t offset,
                    std::int64_t bytes);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_DURABLE_FILE_H

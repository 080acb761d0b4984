//===- durable_file.h - File writes that survive a crash --------*- C++ -*-===//
//
// Finished files and renames are synced to the disk, because a crash after a
// rename without fsync may leave an empty file (Pillai et al., OSDI 2014).
// Interrupted and partial system calls are continued.
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

/// Reports a checkpoint that cannot be written or read. The message names the
/// file, the failed call or the tensor, and the system's reason.
struct CheckpointError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Writes a file whose data survive a crash once finish() has returned. All
/// methods throw CheckpointError.
class DurableFile {
public:
  enum class Open { create, existing };
  /// Opens a file; `create` truncates an existing one.
  DurableFile(const std::string &path, Open how);
  ~DurableFile();
  DurableFile(const DurableFile &) = delete;
  DurableFile &operator=(const DurableFile &) = delete;

  /// Allocates `bytes` bytes on the disk, so that a full disk causes an error
  /// here and not while ranks write.
  void reserve(std::int64_t bytes);
  /// Writes bytes at an offset; several processes may write to one file.
  void writeAt(std::int64_t offset, const void *data, std::size_t bytes);
  /// Syncs all data to the disk and closes the file. If finish() is not called,
  /// a crash may lose data.
  void finish();

private:
  std::string path;
  int handle = -1;
  std::int64_t waiting = 0; ///< bytes not yet in write-back
};

void makeFolder(const std::string &path);
void syncFolder(const std::string &path);
/// A crash may leave replaceFile's temporary file, which has this suffix.
inline constexpr const char *kNext = ".new";
/// Replaces a file atomically and durably: a reader finds the old text or the
/// new one.
void replaceFile(const std::string &path, const std::string &text);
/// Renames a folder and syncs its parent, so that the rename survives a crash.
void renameFolder(const std::string &from, const std::string &to);
void removeFolder(const std::string &path);

/// Reads `bytes` bytes of a file from `offset` on.
/// \throws CheckpointError if the file cannot be read or is too short
void readAt(const std::string &path, std::int64_t offset, void *data,
            std::size_t bytes);

/// Computes the digest of `bytes` bytes of a file from `offset` on.
/// \throws CheckpointError like readAt
Digest digestOfFile(const std::string &path, std::int64_t offset,
                    std::int64_t bytes);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_DURABLE_FILE_H

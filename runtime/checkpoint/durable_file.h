//===- durable_file.h - Writing that survives a crash -----------*- C++ -*-===//
//
// What is written is on the disk when a call says so, not only in the system's
// memory: rename without fsync may leave an empty file (Pillai et al., OSDI
// 2014). Calls that a signal interrupts, or that write less than they were
// given, go on.
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

/// All throw CheckpointError.
class DurableFile {
public:
  enum class Open { create, existing };
  DurableFile(const std::string &path, Open how);
  ~DurableFile();
  DurableFile(const DurableFile &) = delete;
  DurableFile &operator=(const DurableFile &) = delete;

  /// Takes so many bytes of the disk now, so that it is full before, not while
  /// the ranks write.
  void reserve(std::int64_t bytes);
  void writeAt(std::int64_t offset, const void *data, std::size_t bytes);
  /// To the disk, and closed. Without it, what was written may be lost.
  void finish();

private:
  std::string path;
  int handle = -1;
  std::int64_t waiting = 0; ///< bytes that the disk was not given yet
};

void makeFolder(const std::string &path); ///< with its parents
/// What is in it, as names, is on the disk.
void syncFolder(const std::string &path);
/// Of what replaceFile may leave behind if it dies, after the path.
inline constexpr const char *kNext = ".new";
/// Whoever reads `path` finds the old text or the new one, whole.
void replaceFile(const std::string &path, const std::string &text);
/// Durable once the parent is synced, which it does.
void renameFolder(const std::string &from, const std::string &to);
/// Gone or not there; also a file.
void removeFolder(const std::string &path);

/// \throws CheckpointError if the file ends before
void readAt(const std::string &path, std::int64_t offset, void *data,
            std::size_t bytes);

/// Digests `bytes` bytes of a file, from `offset` on.
/// \throws CheckpointError if the file cannot be read or ends before
Digest digestOfFile(const std::string &path, std::int64_t offset,
                    std::int64_t bytes);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CHECKPOINT_DURABLE_FILE_H

//===- sync_file.h - Syncs files to the disk --------------------*- C++ -*-===//

#ifndef MTPLAN_BASE_SYNC_FILE_H
#define MTPLAN_BASE_SYNC_FILE_H

#include <cerrno>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace mtplan::base {

/// Syncs an open file or folder to the disk. Returns 0, or the error.
inline int syncOpen(int handle) {
  while (::fsync(handle) != 0)
    if (errno != EINTR)
      return errno;
  return 0;
}

/// Syncs the entries of a folder to the disk, because a rename survives a crash
/// only after such a sync (Pillai et al., OSDI 2014). Returns 0, or the error.
inline int syncFolder(const std::string &folder) {
  int handle = -1;
  do
    handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (handle < 0 && errno == EINTR);
  if (handle < 0)
    return errno;
  const int error = syncOpen(handle);
  ::close(handle);
  // Some network file systems reject fsync of a folder with EINVAL.
  return error == EINVAL ? 0 : error;
}

inline int syncFolderOf(const std::filesystem::path &path) {
  const std::string folder = path.parent_path();
  return syncFolder(folder.empty() ? "." : folder);
}

} // namespace mtplan::base

#endif // MTPLAN_BASE_SYNC_FILE_H

//===- fault_shim.cpp - Makes a process's file calls fail -----------------===//
//
// Loaded before all other libraries (LD_PRELOAD), this library counts the calls
// that change files under one folder, open them for writing or list them. It
// disturbs one of these calls, or each of them. Environment variables control
// it:
//
//   MTPLAN_FAULT_UNDER  the folder
//   MTPLAN_FAULT_READS  not "": counts the calls that open for reading, map or
//                       read instead
//   MTPLAN_FAULT_LOG    file that gets a line "call path" for each call
//   MTPLAN_FAULT_SINCE  the first counted call is the first whose "call path"
//                       ends with this text; "" or not set: the first of all
//   MTPLAN_FAULT_RANK   the MPI rank that is disturbed; "" or not set: all
//   MTPLAN_FAULT_AT     number of the call, from 1; 0: each
//   MTPLAN_FAULT_DO     die      by SIGKILL, in a write after half of the bytes
//                       all die  the same, after killing the whole session
//                       half     write or read half of the bytes
//                       shrink   truncate the file to 0 bytes first
//                       wall     make mapped pages inaccessible
//                       else     fail with that errno, a number; EINTR only in
//                                calls that may be interrupted, and never twice
//                                in a row
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Orders {
  std::string under, action, since;
  long at = -1; ///< number of the disturbed call, from 1; 0: each; -1: none
  int log = -1;
  bool reads = false;
};

const Orders &orders() {
  static const Orders all = [] {
    auto text = [](const char *name) {
      const char *value = std::getenv(name);
      return std::string(value ? value : "");
    };
    Orders read;
    if (const std::string rank = text("MTPLAN_FAULT_RANK");
        !rank.empty() && rank != text("OMPI_COMM_WORLD_RANK"))
      return read;
    read.under = text("MTPLAN_FAULT_UNDER");
    read.action = text("MTPLAN_FAULT_DO");
    read.since = text("MTPLAN_FAULT_SINCE");
    read.reads = !text("MTPLAN_FAULT_READS").empty();
    if (!read.action.empty())
      read.at = std::strtol(text("MTPLAN_FAULT_AT").c_str(), nullptr, 10);
    if (const std::string log = text("MTPLAN_FAULT_LOG"); !log.empty())
      read.log = static_cast<int>(
          syscall(SYS_openat, AT_FDCWD, log.c_str(),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    return read;
  }();
  return all;
}

std::string pathOf(int handle) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(handle);
  const ssize_t bytes = readlink(link.c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(bytes > 0 ? bytes : 0)};
}

std::string pathAt(int folder, const char *path) {
  return path[0] == '/' || folder == AT_FDCWD ? path
                                              : pathOf(folder) + "/" + path;
}

// Kills all other processes of the session, which are the launcher and the
// ranks, as if the machine had stopped.
void killSession() {
  DIR *all = opendir("/proc");
  while (const dirent *entry = all ? readdir(all) : nullptr) {
    const auto process = static_cast<pid_t>(std::atol(entry->d_name));
    if (process > 0 && process != getpid() && getsid(process) == getsid(0))
      kill(process, SIGKILL);
  }
}

[[noreturn]] void die() {
  if (orders().action == "all die")
    killSession();
  kill(getpid(), SIGKILL);
  for (;;)
    pause();
}

struct Verdict {
  int error = 0; ///< errno to fail with
  bool half = false, dies = false;
};

enum Kind { kPlain, kInterruptible, kWrites, kReads };

Verdict judge(const char *call, const std::string &path, Kind kind) {
  static std::atomic<long> count = 0;
  static std::atomic<bool> counts = false;
  thread_local bool wasInterrupted = false;
  const Orders &all = orders();
  if (all.under.empty() || all.reads != (kind == kReads) ||
      (path != all.under && !path.starts_with(all.under + "/")))
    return {};
  const std::string named = std::string(call) + " " + path;
  if (!counts && !named.ends_with(all.since))
    return {};
  counts = true;
  const long number = ++count;
  if (all.log >= 0) {
    const std::string line = named + "\n";
    if (syscall(SYS_write, all.log, line.data(), line.size()) < 0)
      die(); // a lost line would falsify the count
  }
  if (all.at != 0 && all.at != number)
    return {};
  if (all.action == "die" || all.action == "all die") {
    if (kind != kWrites)
      die();
    return {0, true, true};
  }
  if (all.action == "half")
    return {0, true, false};
  if (all.action == "shrink") {
    syscall(SYS_truncate, path.c_str(), 0);
    return {};
  }
  const int error = std::atoi(all.action.c_str());
  if (error == EINTR) {
    if (kind == kPlain)
      return {};
    wasInterrupted = !wasInterrupted;
    if (!wasInterrupted)
      return {};
  }
  return {error, false, false};
}

template <typename Call> Call *next(const char *name) {
  return reinterpret_cast<Call *>(dlsym(RTLD_NEXT, name));
}

int openAt(int folder, const char *path, int flags, mode_t mode) {
  const bool lists = (flags & O_DIRECTORY) != 0;
  const bool writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (const Verdict verdict =
          judge(lists ? "list" : "open", pathAt(folder, path),
                lists    ? kPlain
                : writes ? kInterruptible
                         : kReads);
      verdict.error != 0) {
    errno = verdict.error;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

mode_t modeOf(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

template <typename Real>
ssize_t written(const char *call, int handle, size_t bytes, Real real) {
  const Verdict verdict = judge(call, pathOf(handle), kWrites);
  if (verdict.error != 0) {
    errno = verdict.error;
    return -1;
  }
  const ssize_t wrote = real(verdict.half && bytes > 1 ? bytes / 2 : bytes);
  if (verdict.dies)
    die();
  return wrote;
}

template <typename Real>
ssize_t readSome(const char *call, int handle, size_t bytes, Real real) {
  if (!orders().reads)
    return real(bytes);
  const Verdict verdict = judge(call, pathOf(handle), kReads);
  if (verdict.error != 0) {
    errno = verdict.error;
    return -1;
  }
  return real(verdict.half && bytes > 1 ? bytes / 2 : bytes);
}

// Handles a call that takes a path or a file descriptor and returns 0 or -1.
template <typename Real>
int done(const char *call, const std::string &path, Kind kind, Real real) {
  if (const Verdict verdict = judge(call, path, kind); verdict.error != 0) {
    errno = verdict.error;
    return -1;
  }
  return real();
}

} // namespace

extern "C" {

// The C library reserves the names of its parameters, so these names differ.

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = modeOf(flags, rest);
  va_end(rest);
  return openAt(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = modeOf(flags, rest);
  va_end(rest);
  return openAt(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = modeOf(flags, rest);
  va_end(rest);
  return openAt(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = modeOf(flags, rest);
  va_end(rest);
  return openAt(folder, path, flags, mode);
}

ssize_t write(int handle, const void *data, size_t bytes) {
  return written("write", handle, bytes, [&](size_t some) {
    return syscall(SYS_write, handle, data, some);
  });
}

ssize_t pwrite(int handle, const void *data, size_t bytes, off_t offset) {
  return written("pwrite", handle, bytes, [&](size_t some) {
    return syscall(SYS_pwrite64, handle, data, some, offset);
  });
}

ssize_t pwrite64(int handle, const void *data, size_t bytes, off64_t offset) {
  return pwrite(handle, data, bytes, offset);
}

ssize_t read(int handle, void *data, size_t bytes) {
  return readSome("read", handle, bytes, [&](size_t some) {
    return syscall(SYS_read, handle, data, some);
  });
}

ssize_t pread(int handle, void *data, size_t bytes, off_t offset) {
  return readSome("pread", handle, bytes, [&](size_t some) {
    return syscall(SYS_pread64, handle, data, some, offset);
  });
}

ssize_t pread64(int handle, void *data, size_t bytes, off64_t offset) {
  return pread(handle, data, bytes, offset);
}

// Access to pages beyond the end of a truncated file raises SIGBUS.
void *mmap(void *at, size_t bytes, int protection, int flags, int handle,
           off_t offset) noexcept {
  void *mapped = next<decltype(mmap)>("mmap")(at, bytes, protection, flags,
                                              handle, offset);
  if (handle < 0 || mapped == MAP_FAILED || !orders().reads)
    return mapped;
  if (const Orders &all = orders();
      all.action == "wall" && pathOf(handle).starts_with(all.under))
    mprotect(mapped, bytes, PROT_NONE);
  const Verdict verdict = judge("mmap", pathOf(handle), kReads);
  if (verdict.error == 0 || verdict.error == EINTR)
    return mapped;
  syscall(SYS_munmap, mapped, bytes);
  errno = verdict.error;
  return MAP_FAILED;
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int handle,
             off64_t offset) noexcept {
  return mmap(at, bytes, protection, flags, handle, offset);
}

int posix_fallocate(int handle, off_t offset, off_t bytes) {
  const Verdict verdict =
      judge("posix_fallocate", pathOf(handle), kInterruptible);
  return verdict.error != 0 ? verdict.error
                            : next<decltype(posix_fallocate)>(
                                  "posix_fallocate")(handle, offset, bytes);
}

int posix_fallocate64(int handle, off64_t offset, off64_t bytes) {
  return posix_fallocate(handle, offset, bytes);
}

int ftruncate(int handle, off_t bytes) noexcept {
  return done("ftruncate", pathOf(handle), kInterruptible, [&] {
    return static_cast<int>(syscall(SYS_ftruncate, handle, bytes));
  });
}

int ftruncate64(int handle, off64_t bytes) noexcept {
  return ftruncate(handle, bytes);
}

int fsync(int handle) {
  return done("fsync", pathOf(handle), kInterruptible,
              [&] { return static_cast<int>(syscall(SYS_fsync, handle)); });
}

// Linux closes the descriptor even if close() fails. Calls on files that are
// open only for reading are not counted.
int close(int handle) {
  const int flags = fcntl(handle, F_GETFL);
  Verdict verdict;
  if (flags >= 0 && (flags & (O_WRONLY | O_RDWR | O_DIRECTORY)) != 0)
    verdict = judge("close", pathOf(handle), kInterruptible);
  const int closed = static_cast<int>(syscall(SYS_close, handle));
  if (verdict.error == 0)
    return closed;
  errno = verdict.error;
  return -1;
}

int rename(const char *from, const char *to) noexcept {
  return done("rename", to, kPlain, [&] {
    return static_cast<int>(
        syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
  });
}

int mkdir(const char *path, mode_t mode) noexcept {
  return done("mkdir", path, kPlain, [&] {
    return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
  });
}

int unlinkat(int folder, const char *path, int flags) noexcept {
  return done("unlink", pathAt(folder, path), kPlain, [&] {
    return static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
  });
}

int unlink(const char *path) noexcept { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char *path) noexcept {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char *path) noexcept {
  if (unlink(path) == 0)
    return 0;
  return errno == EISDIR ? rmdir(path) : -1;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

} // extern "C"

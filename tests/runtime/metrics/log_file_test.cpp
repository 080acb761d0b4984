//===- log_file_test.cpp - A log whose faults do not end training ---------===//

#include <csignal>
#include <stdexcept>

#include <sys/resource.h>

#include <gtest/gtest.h>

#include "runtime/metrics/run_log.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

TEST(LogFile, WritesAtOnceReplacingOrAppending) {
  TestFolder folder;
  const std::string path = writeFile(folder / "a", "old\n");
  {
    LogFile log(path, LogFile::Mode::append);
    EXPECT_TRUE(log.write("new\n"));
    EXPECT_EQ(readFile(path), "old\nnew\n");
  }
  LogFile log(path, LogFile::Mode::replace);
  EXPECT_EQ(readFile(path), "");
  EXPECT_TRUE(log.write("only\n"));
  EXPECT_EQ(readFile(path), "only\n");
  EXPECT_EQ(log.problem(), "");
}

TEST(LogFile, MustBeWritableAtTheStart) {
  TestFolder folder;
  EXPECT_EQ(messageOf<std::runtime_error>([&] {
              LogFile log(folder / "none" + "/a", LogFile::Mode::append);
            }),
            (folder / "none") + "/a: cannot be written: No such file or "
                                "directory");
}

TEST(LogFile, FullDeviceLosesRecordsAndReportsThem) {
  LogFile log("/dev/full", LogFile::Mode::append);
  EXPECT_FALSE(log.write("a\n"));
  EXPECT_EQ(log.problem(), "/dev/full: 1 record lost: No space left on device");
  EXPECT_FALSE(log.write("b\n"));
  EXPECT_EQ(log.problem(),
            "/dev/full: 2 records lost: No space left on device");
}

/// Limits the size of the files that this process writes. SIGXFSZ is ignored,
/// so that a write beyond the limit fails instead of ending the process.
class SizeLimit {
public:
  explicit SizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before);
    handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
  SizeLimit(const SizeLimit &) = delete;
  SizeLimit &operator=(const SizeLimit &) = delete;

private:
  rlimit before = {};
  void (*handler)(int) = nullptr;
};

// The disk is full within the second record. Later there is space again.
TEST(LogFile, NeverEndsWithAPartialRecord) {
  TestFolder folder;
  LogFile log(folder / "a", LogFile::Mode::replace);
  {
    const SizeLimit limit(15);
    EXPECT_TRUE(log.write("123456789\n"));
    EXPECT_FALSE(log.write("abcdefghi\n"));
  }
  EXPECT_EQ(readFile(folder / "a"), "123456789\n");
  EXPECT_EQ(log.lost(), 1);
  EXPECT_TRUE(log.write("ABCDEFGHI\n"));
  EXPECT_EQ(readFile(folder / "a"), "123456789\nABCDEFGHI\n");
  EXPECT_EQ(log.problem(), (folder / "a") + ": 1 record lost: File too large");
}

} // namespace
} // namespace mtplan::runtime

//===- disk_test.cpp - Disks that are too small ----------------===//
//
// Uses tmpfs mounts in a private mount namespace. They show what a real file
// system reports and leaves behind, in addition to what fault_shim.cpp
// simulates.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class CheckpointDisk : public FaultRuns {
protected:
  void SetUp() override {
    if (std::system("unshare -rm mount -t tmpfs none /mnt 2>/dev/null") != 0)
      GTEST_SKIP() << "a user may not mount here (unshare -rm)";
    fs::create_directory(disk);
  }

  struct Runs {
    Ended first, second;
  };

  /// Runs a command on a new disk with these mount options, and once more after
  /// `between`. The contents of the disk after each run are copied to "first"
  /// and "second".
  Runs twice(const std::string &options, const std::string &between) const {
    const std::string script =
        R"(disk=$1 out=$2; shift 2
        mount -t tmpfs -o ")" +
        options + R"(" none "$disk" || exit 99
        "$@"; echo "code $?"; cp -a "$disk/." "$out/first" || exit 98
        )" +
        between +
        R"( || exit 97
        echo "second"
        "$@"; code=$?; cp -a "$disk/." "$out/second" || exit 98
        exit $code)";
    for (const char *name : {"first", "second"}) {
      fs::remove_all(place(name));
      fs::create_directory(place(name));
    }
    std::vector<std::string> all{"unshare", "-rm",  "sh", "-c",
                                 script,    "test", disk, place("")};
    const auto command = threads("one", disk + "/kept");
    all.insert(all.end(), command.begin(), command.end());
    Runs runs;
    runs.second = RunProcess(all).end();
    const std::size_t end = runs.second.out.rfind("second\n");
    EXPECT_NE(end, std::string::npos) << runs.second.out;
    runs.first.out = runs.second.out.substr(0, end);
    if (const auto codes = runs.first.lines("code "); codes.size() == 1)
      runs.first.code = std::stoi(codes[0]);
    runs.second.out.erase(0, end);
    return runs;
  }

  /// Returns the steps with a checkpoint, after comparing each with that of an
  /// undisturbed run.
  static std::vector<int> kept(const std::string &run) {
    std::vector<int> steps;
    for (const std::string &name : namesIn(place(run) + "/kept")) {
      if (name == "latest" || name == "lock")
        continue;
      EXPECT_THAT(differing(place(run) + "/kept/" + name,
                            undisturbed("one") + "/" + name),
                  IsEmpty());
      steps.push_back(std::stoi(name.substr(5)));
    }
    return steps;
  }

  /// Expects that a run on a small disk loses no complete checkpoint, and that
  /// its repetition on a larger disk finishes.
  void expectNoneIsLost(const std::string &options) const {
    SCOPED_TRACE(options);
    const Runs runs =
        twice(options, "mount -o remount,size=64m,nr_inodes=1000 \"$disk\"");
    const auto warnings = runs.first.lines("warning: "),
               errors = runs.first.lines("error: ");
    EXPECT_THAT(runs.first.code, AnyOf(0, 1)) << runs.first.out;
    EXPECT_THAT(errors, SizeIs(runs.first.code));
    EXPECT_THAT(errors, Each(StartsWith("no checkpoint of step 8: ")));
    const auto lost = runs.first.lines("warning: no checkpoint of step ");
    const auto unmarked = runs.first.lines("warning: the checkpoint of step ");
    EXPECT_THAT(warnings, SizeIs(lost.size() + unmarked.size()));
    for (const auto &words : {warnings, errors})
      EXPECT_THAT(words, Each(HasSubstr("No space left on device")));
    // The run saves four times and keeps two checkpoints.
    const std::size_t saved = 4 - lost.size() - errors.size();
    const std::vector<int> steps = kept("first");
    EXPECT_THAT(steps, SizeIs(std::min<std::size_t>(saved, 2)));
    const std::string latest = contentOf(place("first/kept/latest"));
    const bool isMarked = std::ranges::none_of(unmarked, [&](const auto &line) {
      return line.starts_with(std::to_string(steps.back()) + " is whole, but " +
                              disk + "/kept/latest.new: ");
    });
    if (!steps.empty() && isMarked) {
      EXPECT_EQ(latest, "step-0000000" + std::to_string(steps.back()) + "\n");
    } else if (!latest.empty()) {
      EXPECT_EQ(latest, "step-0000000" + std::to_string(steps.front()) + "\n");
    }
    // When the disk has space, the run resumes from the newest checkpoint and
    // ends with the state of an undisturbed run.
    EXPECT_EQ(runs.second.code, 0) << runs.second.out;
    EXPECT_THAT(runs.second.lines("warning: "), IsEmpty());
    const auto from = runs.second.lines("goes on from step ");
    ASSERT_THAT(from, SizeIs(steps.empty() ? 0 : 1));
    if (!steps.empty()) {
      EXPECT_EQ(from[0], std::to_string(steps.back()));
    }
    EXPECT_EQ(kept("second").back(), 8);
  }

  const std::string disk = place("disk");
};

TEST_F(CheckpointDisk, FullDiskLosesNoCheckpoint) {
  std::uintmax_t pages = 0;
  for (const auto &file :
       fs::directory_iterator(undisturbed("one") + "/step-00000008"))
    pages += file.file_size() / 4096 + 1;
  // Sizes range from a disk that holds nothing to one that is never full.
  const std::uintmax_t most = 3 * pages + 2;
  for (std::uintmax_t some = 1; some <= most && !HasFailure(); ++some)
    expectNoneIsLost("size=" + std::to_string(4 * some) + "k");
}

TEST_F(CheckpointDisk, FullInodeTableLosesNoCheckpoint) {
  // The limits range up to all files that a run has at once: the folder, its
  // lock, `latest` and its replacement, three checkpoints with a folder and
  // four files each, and a new manifest.
  for (int files = 3; files <= 22 && !HasFailure(); ++files)
    expectNoneIsLost("nr_inodes=" + std::to_string(files));
}

TEST_F(CheckpointDisk, ReadOnlyDiskFailsAtTheStart) {
  const Runs runs = twice("size=64m", "mount -o remount,ro \"$disk\"");
  EXPECT_EQ(runs.first.code, 0) << runs.first.out;
  EXPECT_EQ(runs.second.code, 2);
  const auto errors = runs.second.lines("error: ");
  ASSERT_THAT(errors, SizeIs(1)) << runs.second.out;
  EXPECT_EQ(errors[0],
            disk + "/kept/lock: cannot create it: Read-only file system");
  EXPECT_THAT(runs.second.out, Not(HasSubstr("step ")));
  EXPECT_THAT(kept("second"), ElementsAre(6, 8));
}

// The disk is mounted read-only.
TEST_F(CheckpointDisk, ReadOnlyCheckpointIsLoaded) {
  const std::string to = place("to");
  std::vector<std::string> all{
      "unshare",
      "-rm",
      "sh",
      "-c",
      R"(mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@")",
      undisturbed("one")};
  const auto command =
      threads("one", to, {"--load", undisturbed("one") + "/step-00000006"});
  all.insert(all.end(), command.begin(), command.end());
  const Ended ended = RunProcess(all).end();
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.lines("goes on from step "), ElementsAre("6"));
  EXPECT_THAT(
      differing(to + "/step-00000008", undisturbed("one") + "/step-00000008"),
      IsEmpty());
}

using CheckpointLimit = FaultRuns;

// Linux also sends SIGXFSZ to the process, which must not end the run.
TEST_F(CheckpointLimit, FileSizeLimitFailsLikeAFullDisk) {
  std::vector<std::string> all{
      "sh", "-c", R"({ ulimit -f 1; "$0" "$@"; echo "code $?"; } 2>&1 | cat)"};
  const auto command = threads("one", place("limited"));
  all.insert(all.end(), command.begin(), command.end());
  const Ended ended = RunProcess(all).end();
  EXPECT_THAT(ended.lines("code "), ElementsAre("1")) << ended.out;
  EXPECT_THAT(ended.lines("warning: no checkpoint of step "), SizeIs(3));
  const auto errors = ended.lines("error: no checkpoint of step 8: ");
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_THAT(errors[0], HasSubstr("File too large"));
}

} // namespace
} // namespace mtplan

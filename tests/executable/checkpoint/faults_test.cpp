//===- faults_test.cpp - Disks that are full or broken ---------===//
//
// Makes each system call of a save fail with one of several errors. Training
// continues, and earlier checkpoints stay as they were.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr std::array kErrors = {ENOSPC, EIO, EROFS};

/// Describes a call of a save.
struct Site {
  long at = 0; ///< number of the call in the run, from 1
  /// Has the form "call path", such as "fsync latest.new"; the path is relative
  /// to the run's folder.
  std::string call;
  /// Says whether the checkpoint was renamed and synced before this call.
  bool isAfter = false;
  /// Says whether a failure has no effect, because the call closes a folder or
  /// a lock file, or sets `latest`, which is retried.
  bool isIdle = false;
};

class CheckpointFaults : public FaultRuns {
protected:
  void SetUp() override {
    if (const std::string why = whyNoFaults(); !why.empty())
      GTEST_SKIP() << why;
  }

  /// Returns one call of each kind on each file in the save of a step.
  static std::vector<Site> sitesOf(const std::string &step,
                                   const std::string &next) {
    const std::string to = place("counted");
    const std::vector<std::string> calls = callsOf("one", to);
    std::vector<Site> sites;
    std::set<std::string> known;
    bool renamed = false, isAfter = false, removes = false;
    for (std::size_t i = firstOf(calls, step); i < firstOf(calls, next); ++i) {
      Site site{static_cast<long>(i) + 1, calls[i], isAfter, false};
      site.call.erase(site.call.find(to), to.size());
      const bool file =
          site.call.ends_with(".safetensors") || site.call.ends_with(".new");
      removes = removes || site.call.ends_with(".replaced");
      site.isIdle = (site.call.starts_with("close") && !file) ||
                    (site.isAfter && !removes);
      renamed = renamed || site.call == "rename /" + step;
      isAfter = isAfter || (renamed && site.call.starts_with("fsync"));
      if (known.insert(site.call + (site.isAfter ? " after" : "")).second)
        sites.push_back(site);
    }
    EXPECT_GT(sites.size(), 40U);
    return sites;
  }

  /// Expects that every step in `to` equals that of an undisturbed run, and
  /// that nothing half-written remains except what could not be removed.
  static void expectWhole(const std::string &to, bool mayHaveRests) {
    for (const std::string &name : namesIn(to)) {
      if (name == "latest" || name == "lock")
        continue;
      if (mayHaveRests && (name.ends_with(".replaced") ||
                           name.ends_with(".partial") || name == "latest.new"))
        continue;
      EXPECT_THAT(
          differing(fs::path(to) / name, fs::path(undisturbed("one")) / name),
          IsEmpty());
    }
  }

  static std::string wordsOf(int error) { return std::strerror(error); }
};

TEST_F(CheckpointFaults, FaultsBeforeTheLastSaveAreWarnings) {
  const std::vector<Site> sites = sitesOf("step-00000006", "step-00000008");
  RecordProperty("sites", std::to_string(sites.size()));
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Site &site = sites[i];
    const int error = kErrors[i % kErrors.size()];
    SCOPED_TRACE(site.call + ": " + wordsOf(error));
    const std::string to = place("to" + std::to_string(i));
    const Ended ended =
        RunProcess(withFaults({to, std::to_string(error), site.at, ""},
                              threads("one", to)))
            .end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    const auto warnings = ended.lines("warning: ");
    if (site.isIdle) {
      EXPECT_THAT(warnings, IsEmpty());
    } else if (site.isAfter) {
      ASSERT_THAT(warnings, SizeIs(1)) << ended.out;
      EXPECT_THAT(
          warnings[0],
          AllOf(HasSubstr("the checkpoint of step 6 is whole, but " + to),
                HasSubstr(wordsOf(error))));
    } else {
      ASSERT_THAT(warnings, SizeIs(1)) << ended.out;
      EXPECT_THAT(
          warnings[0],
          AllOf(HasSubstr("no checkpoint of step 6: rank 0: " + to),
                HasSubstr(wordsOf(error)),
                HasSubstr("training goes on, and those before are untouched")));
    }
    expectWhole(to, site.isAfter);
    EXPECT_TRUE(fs::exists(to + "/step-00000008"));
    EXPECT_TRUE(
        fs::exists(to + (site.isAfter || site.isIdle ? "/step-00000006"
                                                     : "/step-00000004")) ||
        fs::exists(to + "/step-00000006"));
    EXPECT_EQ(contentOf(to + "/latest"), "step-00000008\n");
  }
}

TEST_F(CheckpointFaults, FaultsOfTheLastSaveAreErrors) {
  const std::vector<Site> sites = sitesOf("step-00000008", "/lock/none");
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Site &site = sites[i];
    const int error = kErrors[(i + 1) % kErrors.size()];
    SCOPED_TRACE(site.call + ": " + wordsOf(error));
    const std::string to = place("to" + std::to_string(i));
    const Ended ended =
        RunProcess(withFaults({to, std::to_string(error), site.at, ""},
                              threads("one", to)))
            .end();
    if (site.isIdle || site.isAfter) {
      EXPECT_EQ(ended.code, 0) << ended.out;
      EXPECT_THAT(ended.lines("warning: "), SizeIs(site.isIdle ? 0 : 1));
    } else {
      EXPECT_EQ(ended.code, 1) << ended.out;
      const auto errors = ended.lines("error: ");
      ASSERT_THAT(errors, SizeIs(1)) << ended.out;
      EXPECT_THAT(errors[0],
                  AllOf(HasSubstr("no checkpoint of step 8: rank 0: " + to),
                        HasSubstr(wordsOf(error))));
      EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    }
    expectWhole(to, site.isAfter);
    EXPECT_TRUE(fs::exists(to + "/step-00000006"));
    // The disk works again: the same command finishes the run.
    const Ended again = RunProcess(threads("one", to)).end();
    EXPECT_EQ(again.code, 0) << again.out;
    EXPECT_THAT(again.out, HasSubstr("goes on from step "));
    expectWhole(to, false);
    EXPECT_TRUE(fs::exists(to + "/step-00000008"));
  }
}

// Interrupts each call once, and shortens each write.
TEST_F(CheckpointFaults, InterruptedCallsAreRetried) {
  for (const auto &[plan, action] :
       std::vector<std::pair<std::string, std::string>>{
           {"one", std::to_string(EINTR)},
           {"two", std::to_string(EINTR)},
           {"one", "half"},
           {"two", "half"}}) {
    const std::string name = fmt::format("{}-{}", plan, action);
    SCOPED_TRACE(name);
    const std::string to = place(name), log = to + ".log";
    const Ended ended =
        RunProcess(withFaults({to, action, 0, log}, threads(plan, to))).end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000006",
                                         "step-00000008"));
    for (const char *step : {"/step-00000006", "/step-00000008"})
      EXPECT_THAT(differing(to + step, undisturbed(plan) + step), IsEmpty());
    // Many calls were repeated, so the faults did occur.
    EXPECT_GT(std::ranges::count(contentOf(log), '\n'),
              std::ssize(callsOf(plan, to + ".counted")) + 100);
  }
}

// Faults also occur in calls by which a rank reads back the bytes that another
// rank wrote.
TEST_F(CheckpointFaults, FaultOfOneRankIsAWarning) {
  if (underMpi(1, {}).empty())
    GTEST_SKIP() << "no mpirun, or built without MPI";
  const std::string to = place("to"), log = place("calls");
  const auto run = [&](const FaultOrders &orders) {
    fs::remove_all(to);
    return endOfAll(withFaults(orders, processes(2, "tall", to)));
  };
  for (const int rank : {0, 1})
    for (const bool reads : {false, true}) {
      fs::remove(log);
      FaultOrders orders{.under = to, .action = "", .log = log};
      orders.rank = rank;
      orders.reads = reads;
      EXPECT_EQ(run(orders).code, 0);
      std::vector<std::string> calls = linesOf(log);
      calls.resize(firstOf(calls, "rename " + to + "/step-00000006"));
      calls.resize(firstOf(calls, "step-00000008"));
      std::set<std::string> known;
      for (std::size_t i = firstOf(calls, "step-00000006"); i < calls.size();
           ++i) {
        // Tests each kind of call once, on any file.
        const std::string call = calls[i].substr(0, calls[i].find(' '));
        if (!calls[i].ends_with(".safetensors") || !known.insert(call).second)
          continue;
        orders.action = std::to_string(EIO);
        orders.at = static_cast<long>(i) + 1;
        SCOPED_TRACE(fmt::format("rank {}: {}", rank, calls[i]));
        const Ended ended = run(orders);
        EXPECT_EQ(ended.code, 0) << ended.out;
        const auto warnings = ended.lines("warning: ");
        ASSERT_THAT(warnings, SizeIs(1)) << ended.out;
        EXPECT_THAT(warnings[0],
                    AllOf(HasSubstr(fmt::format("no checkpoint of step 6: rank "
                                                "{}: {}/step-00000006.partial/",
                                                rank, to)),
                          HasSubstr(wordsOf(EIO)),
                          HasSubstr("training goes on")));
        EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000004",
                                             "step-00000008"));
        for (const char *step : {"/step-00000004", "/step-00000008"})
          EXPECT_THAT(differing(to + step, undisturbed("tall") + step),
                      IsEmpty());
      }
      EXPECT_GE(known.size(), reads ? 2U : 4U);
    }
}

TEST_F(CheckpointFaults, UnwritableFolderFailsAtTheStart) {
  const std::string to = place("to");
  const Ended ended = RunProcess(withFaults({to, std::to_string(EROFS), 0, ""},
                                            threads("one", to)))
                          .end();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("error: " + to),
                               HasSubstr("Read-only file system"),
                               Not(HasSubstr("step 1/8"))));
}

} // namespace
} // namespace mtplan

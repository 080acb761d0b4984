//===- crash_test.cpp - Saves that are interrupted ------------------------===//
//
// A run saves every step and dies during a save. The same command resumes and
// dies in its first save one call later, until it has died at each call of a
// save. All checkpoints and reports are compared with those of an undisturbed
// run, so each run verifies the recovery from the death before it.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Describes the processes that die, and how they die.
struct Death {
  const char *plan;
  int processes; ///< MPI processes; 0: threads of one process
  int rank;      ///< the rank whose calls count; -1: all ranks
  /// "all die" kills the launcher and all ranks at once. "die" kills only the
  /// rank that makes the call; the launcher then kills the others.
  const char *action;
  int share; ///< tests one call in this many, or each with MTPLAN_TEST_ALL
};

void PrintTo(const Death &death, std::ostream *out) {
  *out << death.plan << ", processes " << death.processes << ", rank "
       << death.rank << ": " << death.action;
}

class CheckpointCrash : public FaultRuns,
                        public testing::WithParamInterface<Death> {
protected:
  void SetUp() override {
    if (const std::string why = whyNoFaults(); !why.empty())
      GTEST_SKIP() << why;
    if (death.processes > 0 && underMpi(1, {}).empty())
      GTEST_SKIP() << "no mpirun, or built without MPI";
    share = std::getenv("MTPLAN_TEST_ALL") ? 1 : death.share;
    findCalls();
    // A run completes at most one step before it dies.
    steps = static_cast<int>(std::ssize(calls) / share) + 6;
    const Ended ended =
        RunProcess(threads(death.plan, whole,
                           {"--steps", std::to_string(steps), "--save-every",
                            "1", "--keep", std::to_string(steps), "--metrics",
                            whole + ".metrics"}))
            .end();
    ASSERT_EQ(ended.code, 0) << ended.out;
    wholeLog = numbersOf(whole + ".metrics");
    ASSERT_THAT(wholeLog, SizeIs(steps));
  }

  std::vector<std::string> command(int last) const {
    const std::vector<std::string> more{
        "--steps", std::to_string(last), "--save-every", "1", "--metrics", log};
    return death.processes > 0
               ? processes(death.processes, death.plan, to, more)
               : threads(death.plan, to, more);
  }

  // Finds the calls of the third save, the first that removes a checkpoint.
  void findCalls() {
    const std::string lines = place("calls");
    const FaultOrders orders{
        .under = to, .action = "", .log = lines, .rank = death.rank};
    const Ended ended = RunProcess(withFaults(orders, command(4))).end();
    ASSERT_EQ(ended.code, 0) << ended.out;
    calls = linesOf(lines);
    calls.erase(calls.begin() + firstOf(calls, stepFolder(4)), calls.end());
    calls.erase(calls.begin(), calls.begin() + firstOf(calls, stepFolder(3)));
    // A save and a start both look for remains of an earlier save; this call is
    // not counted.
    std::erase(calls, "list " + to + stepFolder(3) + ".partial");
    ASSERT_GT(calls.size(), death.rank == 1 ? 8U : 30U);
    fs::remove_all(to);
    fs::remove(log);
  }

  // Returns the steps with an intact checkpoint, after comparing their
  // contents.
  std::vector<int> kept() const {
    std::vector<int> found;
    for (const std::string &name : namesIn(to))
      if (name.starts_with("step-") && name.find('.') == std::string::npos) {
        EXPECT_THAT(differing(fs::path(to) / name, fs::path(whole) / name),
                    IsEmpty());
        found.push_back(std::stoi(name.substr(5)));
      }
    return found;
  }

  fs::file_time_type writtenAt(int step) const {
    std::error_code ignored;
    return fs::last_write_time(to + stepFolder(step) + "/manifest.json",
                               ignored);
  }

  // Expects that the run resumed from step `from`. Output of a killed launcher
  // may be lost.
  void expectWentOn(int from, const Ended &ended) const {
    if (from > 0 && (death.processes == 0 || ended.code == 0)) {
      EXPECT_THAT(ended.lines("goes on from step "),
                  ElementsAre(std::to_string(from)))
          << ended.out;
    }
    EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    std::vector<std::string> reported = numbersOf(log);
    if (!contentOf(log).ends_with('\n') && !reported.empty())
      reported.pop_back(); // cut off by the kill
    EXPECT_GT(std::ssize(reported), from);
    std::vector<std::string> expected = wholeLog;
    expected.resize(std::min(expected.size(), reported.size()));
    EXPECT_EQ(reported, expected);
  }

  const Death death = GetParam();
  const std::string to = place("dies"), log = place("dies.metrics"),
                    whole = place("whole");
  int share = 1, steps = 0;
  std::vector<std::string> calls, wholeLog;
};

TEST_P(CheckpointCrash, DeathAtAnyCallOfASaveLosesNoBit) {
  RecordProperty("calls", std::to_string(calls.size()));
  const long after = std::ssize(calls) + 1; // the first call of the next save
  int newest = 0, deaths = 0;
  bool isThere = false;
  for (long at = 1; at <= after && !HasFailure();
       at = at < after ? std::min(at + share, after) : after + 1) {
    const int step = std::max(newest + 1, 3);
    std::string first = calls[0];
    first.replace(first.find(stepFolder(3)), stepFolder(3).size(),
                  stepFolder(step));
    SCOPED_TRACE(fmt::format("step {}, call {} of {}: {}", step, at, after - 1,
                             at < after ? calls[at - 1] : "none"));
    const FaultOrders orders{.under = to,
                             .action = death.action,
                             .at = at,
                             .since = first,
                             .rank = death.rank};
    const auto before = writtenAt(newest);
    const Ended dead =
        death.processes > 0
            ? endOfAll(withFaults(orders, command(steps)))
            : RunProcess(withFaults(orders, command(steps))).end();
    if (death.processes == 0 || std::string(death.action) == "all die")
      EXPECT_EQ(dead.code, kKilled) << dead.out;
    else
      EXPECT_NE(dead.code, 0) << dead.out;
    ++deaths;
    expectWentOn(newest, dead);
    EXPECT_EQ(writtenAt(newest), before); // the run did not start over
    const std::vector<int> left = kept();
    ASSERT_GE(left.size(), 2U);
    newest = left.back();
    // The previous checkpoint is the newest, unless this save is complete.
    EXPECT_EQ(newest, isThere || newest == step ? step : step - 1);
    isThere = newest == step;
    // If the previous run died before it set `latest`, this run repairs it.
    EXPECT_THAT(contentOf(to + "/latest"),
                AnyOf(stepFolder(step - 1).substr(1) + "\n",
                      stepFolder(newest).substr(1) + "\n"));
  }
  EXPECT_TRUE(isThere);
  EXPECT_LT(newest - 2, deaths); // some saves needed several runs
  const Ended ended = RunProcess(command(steps)).end();
  EXPECT_EQ(ended.code, 0) << ended.out;
  expectWentOn(newest, ended);
  EXPECT_THAT(numbersOf(log), SizeIs(steps));
  // No partial checkpoint remains, and the newest two checkpoints are kept.
  EXPECT_THAT(kept(), ElementsAre(steps - 1, steps));
  EXPECT_THAT(namesIn(to), SizeIs(4));
  EXPECT_EQ(contentOf(to + "/latest"), stepFolder(steps).substr(1) + "\n");
}

class CheckpointStart : public FaultRuns {
protected:
  // Returns a folder with remains of killed runs: two checkpoints, a partial
  // save and a half-removed checkpoint.
  static std::string left() {
    std::string to = place("left");
    const fs::path whole = undisturbed("one"), folder = to;
    fs::remove_all(folder);
    fs::create_directory(folder);
    for (const auto &[from, name] :
         {std::pair("step-00000004", "step-00000004"),
          std::pair("step-00000006", "step-00000006"),
          std::pair("step-00000008", "step-00000009.partial"),
          std::pair("step-00000002", "step-00000002.replaced")})
      fs::copy(whole / from, folder / name);
    std::ofstream(folder / "latest.new") << "step-";
    std::ofstream(folder / "latest") << "step-00000004\n";
    return to;
  }
};

TEST_F(CheckpointStart, DeathAtAnyCallOfAStartIsRecovered) {
  if (const std::string why = whyNoFaults(); !why.empty())
    GTEST_SKIP() << why;
  const std::string to = left(), log = place("calls");
  const Ended whole =
      RunProcess(withFaults({to, "", 0, log}, threads("one", to))).end();
  ASSERT_EQ(whole.code, 0) << whole.out;
  const std::vector<std::string> calls = linesOf(log);
  const std::size_t start = firstOf(calls, stepFolder(8));
  ASSERT_GT(start, 20U);
  for (std::size_t at = 1; at <= start; ++at) {
    SCOPED_TRACE(calls[at - 1]);
    left();
    const Ended dead = RunProcess(withFaults({to, "die", static_cast<long>(at)},
                                             threads("one", to)))
                           .end();
    EXPECT_EQ(dead.code, kKilled) << dead.out;
    const Ended ended = RunProcess(threads("one", to)).end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_THAT(ended.lines("goes on from step "), ElementsAre("6"));
    EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000006",
                                         "step-00000008"));
    EXPECT_THAT(
        differing(to + stepFolder(8), undisturbed("one") + stepFolder(8)),
        IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runs, CheckpointCrash,
    testing::Values(
        Death{"one", 0, -1, "die", 1}, Death{"two", 0, -1, "die", 1},
        Death{"tall", 0, -1, "die", 11}, Death{"two", 2, 0, "all die", 30},
        Death{"two", 2, 1, "all die", 6}, Death{"two", 2, 0, "die", 30},
        Death{"two", 2, 1, "die", 6}),
    [](const auto &test) {
      const Death &death = test.param;
      return fmt::format(
          "{}{}{}", death.plan, death.processes > 0 ? "Processes" : "Threads",
          death.rank < 0
              ? ""
              : fmt::format("{}{}", death.rank,
                            std::string(death.action) == "die" ? "Alone"
                                                               : "AndAll"));
    });

} // namespace
} // namespace mtplan

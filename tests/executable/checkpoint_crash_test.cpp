//===- checkpoint_crash_test.cpp - Runs that die and go on ----------------===//

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::AnyOf;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kKilled = 128 + SIGKILL;

class CheckpointCrash : public FaultRuns {
protected:
  void SetUp() override {
    if (const std::string why = whyNoFaults(); !why.empty())
      GTEST_SKIP() << why;
  }

  /// Numbers of the first call of the save of step 6, and of step 8, among
  /// those of a run.
  static std::pair<long, long> callsOfStep6(const std::string &plan) {
    const auto calls = callsOf(plan, place("counted"));
    EXPECT_GT(calls.size(), 100U);
    // From 1.
    return {static_cast<long>(firstOf(calls, "step-00000006")) + 1,
            static_cast<long>(firstOf(calls, "step-00000008")) + 1};
  }

  /// A run of 8 steps dies at a call; the same command again ends it. Returns
  /// the step that it goes on from.
  static long diesAndGoesOn(const std::string &plan, long call) {
    const std::string to = place("dies"), metrics = place("metrics");
    fs::remove_all(to);
    fs::remove(metrics);
    const auto command = threads(plan, to, {"--metrics", metrics});
    const Ended dead =
        RunProcess(withFaults({to, "die", call, ""}, command)).end();
    EXPECT_EQ(dead.code, kKilled) << dead.out;
    const Ended ended = RunProcess(command).end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    const std::string reference = undisturbed(plan);
    EXPECT_EQ(numbersOf(metrics), numbersOf(reference + "/metrics"));
    // Nothing half-written stays, and nothing too many.
    EXPECT_THAT(namesIn(to), ElementsAre("latest", "lock", "step-00000006",
                                         "step-00000008"));
    EXPECT_EQ(contentOf(to + "/latest"), "step-00000008\n");
    for (const char *step : {"/step-00000006", "/step-00000008"})
      EXPECT_THAT(differing(to + step, reference + step), IsEmpty());
    const auto from = ended.lines("goes on from step ");
    return from.size() == 1 ? std::stol(from[0]) : -1;
  }
};

TEST_F(CheckpointCrash, AtEveryCallOfASave) {
  const auto [first, next] = callsOfStep6("one");
  ASSERT_GT(first, 0);
  ASSERT_GT(next, first + 50);
  RecordProperty("calls", std::to_string(next - first));
  long before = 4;
  bool either[2] = {};
  for (long call = first; call <= next; ++call) {
    SCOPED_TRACE("call " + std::to_string(call - first + 1) + " of " +
                 std::to_string(next - first));
    const long from = diesAndGoesOn("one", call);
    ASSERT_THAT(from, AnyOf(4, 6));
    // Once it is there it is there.
    EXPECT_GE(from, before);
    before = from;
    either[from == 6] = true;
    if (HasFailure())
      break; // the others would say the same
  }
  EXPECT_TRUE(either[0] && either[1]);
}

// What one rank does may come before or after what another does.
TEST_F(CheckpointCrash, AtSomeCallsOfASaveOfTwoRanks) {
  const auto [first, next] = callsOfStep6("two");
  ASSERT_GT(next, first + 100);
  for (long call = first; call <= next; call += (next - first) / 12) {
    SCOPED_TRACE("call " + std::to_string(call - first + 1) + " of " +
                 std::to_string(next - first));
    EXPECT_THAT(diesAndGoesOn("two", call), AnyOf(4, 6));
  }
}

} // namespace
} // namespace mtplan

//===- checkpoint_crash_test.cpp - Runs that die and go on ----------------===//

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
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

/// Dies in the middle of what it says of a step: the step is done, and its
/// record half a line.
struct Killed {
  const char *plan;
  int processes; ///< 0: threads
};

void PrintTo(const Killed &killed, std::ostream *out) {
  *out << killed.plan << ", processes " << killed.processes;
}

class CheckpointKilled : public CheckpointCrash,
                         public testing::WithParamInterface<Killed> {};

TEST_P(CheckpointKilled, LosesNoBitOfTwentySteps) {
  const std::string plan = GetParam().plan;
  const int processes = GetParam().processes;
  auto command = [&](const std::string &to, const std::string &metrics) {
    const std::vector<std::string> more{"--steps", "20",           "--metrics",
                                        metrics,   "--save-every", "5"};
    return processes > 0 ? underMpi(processes, arguments(plan, to, more))
                         : threads(plan, to, more);
  };
  if (processes > 0 && command("", "").empty())
    GTEST_SKIP() << "no mpirun, or built without MPI";
  const std::string whole = place("whole"), metrics = place("whole.metrics");
  // Whoever runs without a fault runs on threads: those are the same bits.
  const Ended reference = RunProcess(threads(plan, whole,
                                             {"--steps", "20", "--save-every",
                                              "5", "--metrics", metrics}))
                              .end();
  ASSERT_EQ(reference.code, 0) << reference.out;
  ASSERT_EQ(numbersOf(metrics).size(), 20U);
  // mpirun takes seconds to end the others.
  for (const int step : processes > 0 ? std::vector<int>{7, 13}
                                      : std::vector<int>{3, 7, 13, 18, 20}) {
    SCOPED_TRACE("dies at step " + std::to_string(step));
    const std::string to = place("to"), log = place("log");
    fs::remove_all(to);
    fs::remove(log);
    // The first call opens the file.
    const Ended dead =
        RunProcess(withFaults({log, "die", step + 1, ""}, command(to, log)))
            .end();
    EXPECT_NE(dead.code, 0) << dead.out;
    EXPECT_FALSE(contentOf(log).ends_with('\n'));
    const Ended ended = RunProcess(command(to, log)).end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_EQ(numbersOf(log), numbersOf(metrics));
    EXPECT_THAT(differing(to + "/step-00000020", whole + "/step-00000020"),
                IsEmpty());
    // The save of step 10 begins when that of step 5 has ended.
    if (step > 10) {
      EXPECT_THAT(ended.out, HasSubstr("goes on from step "));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, CheckpointKilled,
                         testing::Values(Killed{"one", 0}, Killed{"four", 0},
                                         Killed{"four", 4}),
                         [](const auto &test) {
                           return std::string(test.param.plan) +
                                  (test.param.processes > 0 ? "Processes"
                                                            : "Threads");
                         });

} // namespace
} // namespace mtplan

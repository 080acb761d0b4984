//===- killed_test.cpp - Twenty steps in two runs --------------===//
//
// A run that is killed and resumed equals an undisturbed run to the bit: it has
// the same metrics in every step and the same last checkpoint.
//
//===----------------------------------------------------------------------===//

#include <csignal>
#include <filesystem>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kSteps = 20;

struct Ranks {
  const char *plan;
  int processes; ///< number of MPI processes; 0: threads
};

void PrintTo(const Ranks &ranks, std::ostream *out) {
  *out << ranks.plan << ", processes " << ranks.processes;
}

class CheckpointKilled : public FaultRuns,
                         public testing::WithParamInterface<Ranks> {
protected:
  void SetUp() override {
    if (const std::string why = whyNoFaults(); !why.empty())
      GTEST_SKIP() << why;
    if (command("", "").empty())
      GTEST_SKIP() << "no mpirun, or built without MPI";
    // Runs without a fault use threads, which give the same bits.
    const Ended ended =
        RunProcess(threads(GetParam().plan, whole(),
                           {"--steps", std::to_string(kSteps), "--save-every",
                            "1", "--keep", std::to_string(kSteps), "--metrics",
                            wholeLog()}))
            .end();
    ASSERT_EQ(ended.code, 0) << ended.out;
    ASSERT_EQ(numbersOf(wholeLog()).size(), kSteps);
  }

  static std::vector<std::string> command(const std::string &to,
                                          const std::string &log,
                                          const std::string &saveEvery = "1",
                                          const std::string &grace = "0") {
    const std::vector<std::string> more{"--steps",      std::to_string(kSteps),
                                        "--metrics",    log,
                                        "--save-every", saveEvery};
    return GetParam().processes > 0
               ? processes(GetParam().processes, GetParam().plan, to, more,
                           grace)
               : threads(GetParam().plan, to, more);
  }

  static std::string whole() { return place("whole"); }
  static std::string wholeLog() { return place("whole.metrics"); }

  /// Repeats the command and expects the results of an undisturbed run.
  static Ended goesOn(const std::vector<std::string> &again,
                      const std::string &to, const std::string &log) {
    Ended ended = RunProcess(again).end();
    EXPECT_EQ(ended.code, 0) << ended.out;
    EXPECT_THAT(ended.lines("warning: "), IsEmpty());
    EXPECT_EQ(numbersOf(log), numbersOf(wholeLog()));
    EXPECT_THAT(
        differing(to + stepFolder(kSteps), whole() + stepFolder(kSteps)),
        IsEmpty());
    return ended;
  }
};

// Kills launcher and ranks together, when the checkpoint of the step has just
// been renamed.
TEST_P(CheckpointKilled, DeathAfterAnySaveLosesNoBit) {
  for (int step = 1; step <= kSteps && !HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::string to = place("to"), log = place("log");
    fs::remove_all(to);
    fs::remove(log);
    const FaultOrders orders{.under = to,
                             .action = "all die",
                             .at = 2,
                             .since = "rename " + to + stepFolder(step)};
    const Ended dead = endOfAll(withFaults(orders, command(to, log)));
    EXPECT_EQ(dead.code, kKilled) << dead.out;
    EXPECT_THAT(differing(to + stepFolder(step), whole() + stepFolder(step)),
                IsEmpty());
    const Ended ended = goesOn(command(to, log), to, log);
    EXPECT_THAT(ended.lines("goes on from step "),
                ElementsAre(std::to_string(step)));
  }
}

// When the run dies, half a line is in the log, and a save may be in progress.
TEST_P(CheckpointKilled, DeathWithinALogLineLosesNoBit) {
  // mpirun takes seconds to end the remaining processes.
  for (const int step : GetParam().processes > 0
                            ? std::vector<int>{7}
                            : std::vector<int>{3, 7, 13, 18, 20}) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::string to = place("to"), log = place("log");
    fs::remove_all(to);
    fs::remove(log);
    // Call 1 opens the file, so call n + 1 writes the line of step n.
    const Ended dead =
        endOfAll(withFaults({log, "die", step + 1}, command(to, log, "2", "")));
    EXPECT_NE(dead.code, 0) << dead.out;
    // The other ranks end by SIGTERM and start no save, because no save could
    // complete.
    for (int rank = 1; rank < GetParam().processes; ++rank)
      EXPECT_THAT(dead.lastMessage(rank), HasSubstr("received SIGTERM: rank 0 "
                                                    "did not reach "))
          << dead.out;
    EXPECT_FALSE(contentOf(log).ends_with('\n'));
    const Ended ended = goesOn(command(to, log, "2"), to, log);
    // The save of step 4 ends before that of step 6 begins: a checkpoint
    // exists.
    if (step > 6) {
      EXPECT_THAT(ended.out, HasSubstr("goes on from step "));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, CheckpointKilled,
                         testing::Values(Ranks{"one", 0}, Ranks{"four", 0},
                                         Ranks{"four", 4}),
                         [](const auto &test) {
                           return std::string(test.param.plan) +
                                  (test.param.processes > 0 ? "Processes"
                                                            : "Threads");
                         });

} // namespace
} // namespace mtplan

//===- own_processes_test.cpp - Ranks that mtrun starts as processes ------===//

#include <csignal>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executable/fault_runs.h"

namespace mtplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class OwnProcesses : public FaultRuns {
protected:
  static std::vector<std::string>
  command(const std::string &plan, const std::string &checkpoints,
          const std::vector<std::string> &more) {
    std::vector<std::string> all = threads(plan, checkpoints, more);
    all.insert(all.end(), {"--ranks-as", "processes"});
    return all;
  }
  static std::vector<std::string> command(const std::string &checkpoints) {
    std::vector<std::string> all = endless("four", checkpoints);
    all.insert(all.begin(), MTPLAN_MTRUN);
    all.insert(all.end(), {"--ranks-as", "processes"});
    return all;
  }
};

TEST_F(OwnProcesses, HaveTheBitsOfThreads) {
  const std::string to = place("own");
  const Ended ended = endOfAll(
      command("four", to, {"--keep", "9", "--metrics", place("metrics")}));
  ASSERT_EQ(ended.code, 0) << ended.out;
  EXPECT_EQ(numbersOf(place("metrics")),
            numbersOf(undisturbed("four") + "/metrics"));
}

TEST_F(OwnProcesses, KilledRankIsNamedByAllOthers) {
  RunProcess run(command(place("killed")));
  const Ended ended = endOfKilled(run, 1);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.out, HasSubstr("rank 1 was ended by signal 9 (Killed)"));
  for (const int rank : {0, 2, 3})
    EXPECT_THAT(ended.lastMessage(rank), HasSubstr("rank 1 did not reach "))
        << ended.out;
}

TEST_F(OwnProcesses, SigtermToTheParentSaves) {
  RunProcess run(command(place("ended")));
  expectSavedWhenToldToEnd(run);
}

TEST_F(OwnProcesses, CtrlCSavesAsWithThreads) {
  RunProcess processes(command(place("interrupted")));
  expectSavedWhenToldToEnd(processes, SIGINT);
  std::vector<std::string> alone = endless("two", place("threads"));
  alone.insert(alone.begin(), MTPLAN_MTRUN);
  RunProcess threads(alone);
  expectSavedWhenToldToEnd(threads, SIGINT);
}

// Each process receives the signal two or three times, but treats the signals
// as one.
TEST_F(OwnProcesses, SignalToTheGroupSaves) {
  for (const int number : {SIGTERM, SIGINT}) {
    RunProcess run(command(place("group" + std::to_string(number))));
    expectSavedWhenToldToEnd(run, number, &RunProcess::signalGroup);
  }
}

TEST_F(OwnProcesses, EndWithTheParent) {
  RunProcess run(command(place("alone")));
  ASSERT_TRUE(run.writes("step        5/")) << run.end().out;
  run.signal(SIGKILL);
  run.end();
  for (int i = 0; i < 3000 && !run.left().empty(); ++i)
    usleep(10000);
  EXPECT_THAT(run.left(), IsEmpty());
}

TEST_F(OwnProcesses, ExitCodesAndMessagesAreThoseOfThreads) {
  const Ended data = endOfAll(
      command("two", place("none"), {"--data", place("no such file")}));
  EXPECT_EQ(data.code, 2) << data.out;
  EXPECT_THAT(data.out, AllOf(HasSubstr("no such file"),
                              Not(HasSubstr("rank ")))); // not per rank
  const Ended word =
      endOfAll(threads("two", place("word"), {"--ranks-as", "process"}));
  EXPECT_EQ(word.code, 2);
  EXPECT_THAT(word.out,
              HasSubstr("--ranks-as process: must be auto, threads or "
                        "processes; nearest is processes"));
}

TEST_F(OwnProcesses, CalibrateAMachine) {
  RunProcess run({MTPLAN_MTRUN, "calibrate", "--ranks", "2", "--ranks-as",
                  "processes", "-o", place("machine.json")});
  for (int i = 0; i < 3000 && run.processOf(1) < 0; ++i)
    usleep(10000);
  EXPECT_GT(run.processOf(1), 0);
  EXPECT_TRUE(run.writes(": products, f32\n"));
  run.signal(SIGTERM);
  EXPECT_NE(run.end().code, 0);
}

} // namespace
} // namespace mtplan

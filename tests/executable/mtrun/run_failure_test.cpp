//===- run_failure_test.cpp - Failures of ranks and files in mtrun --------===//
//
// Kills, stops and slows real processes. Tests check which processes end, with
// which messages, and that none remains. Limits on times are so long that a
// busy machine does not exceed them.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/digest.h"
#include "runtime/executor/train.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class RunFailure : public testing::Test {
protected:
  static void SetUpTestSuite() {
    folder = new TestFolder;
    ASSERT_EQ(compileExample("tiny-gpt2", *folder / "dp2tp2",
                             {"--gpus", "4", "--dp", "2", "--tp", "2"}),
              "");
    ASSERT_EQ(compileExample("tiny-gpt2", *folder / "pp2",
                             {"--gpus", "2", "--pp", "2"}),
              "");
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }

  static std::vector<std::string>
  arguments(const std::string &plan, const std::vector<std::string> &more) {
    std::vector<std::string> all{*folder / plan, "--data", kText};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<std::string>
  threads(const std::string &plan, const std::vector<std::string> &more) {
    std::vector<std::string> all = arguments(plan, more);
    all.insert(all.begin(), MTPLAN_MTRUN);
    return all;
  }

  static void expectNoProcessLeft(const RunProcess &run) {
    EXPECT_TRUE(run.isEmptied()) << testing::PrintToString(run.left());
  }

  static TestFolder *folder;
};
TestFolder *RunFailure::folder = nullptr;

class RunFailureMpi : public RunFailure {
protected:
  void SetUp() override {
    if (underMpi(1, {}).empty())
      GTEST_SKIP() << "no mpirun, or built without MPI";
  }

  /// Returns how an endless run ends after `rank` received `signal`.
  static Ended runUntil(const std::string &plan, int ranks, int signal,
                        int rank, const std::vector<std::string> &more = {}) {
    std::vector<std::string> flags{"--steps", "10000000", "--every", "5"};
    flags.insert(flags.end(), more.begin(), more.end());
    RunProcess run(underMpi(ranks, arguments(plan, flags)));
    EXPECT_TRUE(run.writes("step        5/")) << run.end().out;
    const pid_t process = run.processOf(rank);
    EXPECT_GT(process, 0);
    const auto start = std::chrono::steady_clock::now();
    if (process > 0)
      kill(process, signal);
    Ended ended = run.end();
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    RecordProperty("seconds_after_signal_" + std::to_string(signal),
                   std::to_string(took.count()));
    EXPECT_NE(ended.code, 0) << ended.out;
    EXPECT_THAT(ended.out, Not(HasSubstr("had to be killed")));
    expectNoProcessLeft(run);
    return ended;
  }

  // Matches the message about rank 1, with the collective and its group.
  static constexpr const char *kRank1 =
      "rank 1 did not reach (all-|reduce-).*in group ";
};

TEST_F(RunFailureMpi, KilledRankIsNamedByAllOthers) {
  const Ended ended = runUntil("dp2tp2", 4, SIGKILL, 1);
  for (const int rank : {0, 2, 3})
    EXPECT_THAT(ended.lastMessage(rank), ContainsRegex(kRank1)) << ended.out;
}

// The patience is longer than the default, because other tests may occupy the
// core of a rank. The rank may stop in any collective, also in the all-gather
// of the gradient norm.
TEST_F(RunFailureMpi, StoppedRankIsNamedByAllOthers) {
  const std::vector<std::string> patient{"--patience", "20"};
  auto stage = std::async(std::launch::async, [&] {
    return runUntil("pp2", 2, SIGSTOP, 0, patient);
  });
  const Ended ended = runUntil("dp2tp2", 4, SIGSTOP, 1, patient);
  for (const int rank : {0, 2, 3})
    EXPECT_THAT(ended.lastMessage(rank), ContainsRegex(kRank1)) << ended.out;
  const Ended staged = stage.get();
  EXPECT_THAT(staged.lastMessage(1),
              ContainsRegex("rank 0 did not reach (receive|all-.*) \""))
      << staged.out;
}

TEST_F(RunFailureMpi, KilledStageIsNamed) {
  const Ended ended = runUntil("pp2", 2, SIGKILL, 1);
  EXPECT_THAT(ended.lastMessage(0), HasSubstr("rank 1 did not reach"))
      << ended.out;
}

TEST_F(RunFailureMpi, KilledLauncherLeavesNoProcess) {
  RunProcess run(underMpi(
      4, arguments("dp2tp2", {"--steps", "10000000", "--every", "5"})));
  ASSERT_TRUE(run.writes("step        5/")) << run.end().out;
  EXPECT_EQ(run.left().size(), 5U);
  run.signal(SIGKILL);
  EXPECT_EQ(run.end().code, 128 + SIGKILL);
  expectNoProcessLeft(run);
}

TEST_F(RunFailureMpi, SigtermToOneRankEndsAll) {
  const Ended ended = runUntil("dp2tp2", 4, SIGTERM, 2);
  EXPECT_THAT(ended.lastMessage(2), HasSubstr("received SIGTERM")) << ended.out;
  for (const int rank : {0, 1, 3})
    EXPECT_THAT(ended.lastMessage(rank), HasSubstr("SIGTERM")) << ended.out;
}

TEST_F(RunFailureMpi, SlowRankWithinTheTimeoutIsAwaited) {
  std::vector<std::string> flags{"--steps", "2000",       "--every",
                                 "5",       "--patience", "60"};
  RunProcess run(underMpi(4, arguments("dp2tp2", flags)));
  ASSERT_TRUE(run.writes("step    5/")) << run.end().out;
  const pid_t process = run.processOf(1);
  ASSERT_GT(process, 0);
  kill(process, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  kill(process, SIGCONT);
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("step 2000/2000"));
}

TEST_F(RunFailureMpi, SlowRankBeyondTheTimeoutFails) {
  RunProcess run(
      underMpi(4, arguments("dp2tp2", {"--steps", "10000000", "--every", "5",
                                       "--patience", "5"})));
  ASSERT_TRUE(run.writes("step        5/")) << run.end().out;
  const pid_t process = run.processOf(3);
  ASSERT_GT(process, 0);
  kill(process, SIGSTOP);
  ASSERT_TRUE(run.writes("rank 3 did not reach")) << run.end().out;
  kill(process, SIGCONT);
  const Ended ended = run.end();
  EXPECT_NE(ended.code, 0);
  for (const int rank : {0, 1, 2})
    EXPECT_THAT(ended.lastMessage(rank), ContainsRegex("rank 3 did not reach "
                                                       ".*within 5 s"))
        << ended.out;
  expectNoProcessLeft(run);
}

TEST_F(RunFailureMpi, RankWithOtherOptionsIsNamed) {
  const std::string plan = *folder / "dp2tp2", other = *folder / "other";
  std::filesystem::copy(plan, other);
  std::string text = contentOf(other + "/plan.json");
  text.replace(text.find("embed.forward"), 13, "EMBED.FORWARD");
  std::ofstream(other + "/plan.json") << text;
  struct Case {
    std::vector<std::string> rank2;
    std::string words;
  };
  const std::string book = *folder / "book.txt";
  std::ofstream(book) << contentOf(kText).substr(5000);
  const std::string changed = *folder / "changed.txt";
  std::string bytes = contentOf(kText);
  const auto shown = [&](const std::string &path) {
    return path + ": text, " + std::to_string(bytes.size()) +
           " bytes, xxh128 " + runtime::textOf(runtime::digestOf(bytes));
  };
  const std::string most = shown(kText);
  bytes[bytes.size() - 100] ^= 1;
  std::ofstream(changed) << bytes;
  for (const Case &one : std::vector<Case>{
           {{other, "--data", kText},
            "rank 2 was not started with the plan of ranks 0, 1 and 3"},
           {{plan, "--data", kText, "--lr", "0.002"},
            "rank 2 was not started with the options of ranks 0, 1 and 3"},
           {{plan, "--data", book},
            "rank 2 was not started with the data of ranks 0, 1 and 3"},
           {{plan, "--data", changed},
            "rank 2 was not started with the data of ranks 0, 1 and 3: rank 2 "
            "has " +
                shown(changed) + ", rank 0 has " + most},
           {{plan, "--data", kText, "--seed", "5"},
            "rank 2 was not started with the options of ranks 0, 1 and 3"},
           {{*folder / "nowhere", "--data", kText},
            "rank 2 failed: " + *folder / "nowhere"}}) {
    std::vector<std::string> command = underMpi(2, {plan, "--data", kText});
    for (const std::vector<std::string> &ranks :
         {one.rank2, std::vector<std::string>{plan, "--data", kText}}) {
      command.insert(command.end(), {":", "-np", "1", MTPLAN_MTRUN});
      command.insert(command.end(), ranks.begin(), ranks.end());
    }
    RunProcess run(command);
    const Ended ended = run.end();
    EXPECT_NE(ended.code, 0);
    for (const int rank : {0, 1, 3})
      EXPECT_THAT(ended.lastMessage(rank), HasSubstr(one.words)) << ended.out;
    EXPECT_NE(ended.lastMessage(2), "") << ended.out;
    EXPECT_THAT(ended.out, Not(HasSubstr("step")));
    expectNoProcessLeft(run);
  }
}

TEST_F(RunFailureMpi, NumberOfProcessesMustBeThePlans) {
  RunProcess run(underMpi(3, arguments("dp2tp2", {})));
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 2);
  // mpirun may end the other ranks before they report the error.
  EXPECT_THAT(ended.lines("error: "),
              AllOf(Not(IsEmpty()),
                    testing::Each(HasSubstr(
                        ": the plan is for 4 ranks, but 3 were started: mpirun "
                        "-np 4 mtrun "))))
      << ended.out;
}

TEST_F(RunFailureMpi, ThreadsAndProcessesTrainTheSameBits) {
  for (const auto &[plan, ranks] :
       std::map<std::string, int>{{"dp2tp2", 4}, {"pp2", 2}}) {
    const std::string one = *folder / (plan + ".threads"),
                      other = *folder / (plan + ".processes");
    EXPECT_EQ(RunProcess(threads(plan, {"--steps", "5", "--metrics", one}))
                  .end()
                  .code,
              0);
    EXPECT_EQ(RunProcess(underMpi(ranks, arguments(plan, {"--steps", "5",
                                                          "--metrics", other})))
                  .end()
                  .code,
              0);
    EXPECT_EQ(numbersOf(one).size(), 5U);
    EXPECT_THAT(numbersOf(one)[4], HasSubstr("\"loss\": 5."));
    EXPECT_EQ(numbersOf(one), numbersOf(other));
  }
}

TEST_F(RunFailure, FailingThreadEndsAll) {
  using namespace runtime;
  const Plan plan = readPlanFile(*folder / "dp2tp2" + "/plan.json");
  std::atomic<std::int64_t> latest = 0;
  const auto all = [&] {
    runOnThreads(4, {}, [&](World &world) {
      auto backend = makeCpuBackend(1);
      TrainOptions options;
      options.steps = 1000000;
      train(plan, world, *backend, options,
            {[&](std::int64_t step) -> std::unique_ptr<StepData> {
               if (step == 3 && world.rank() == 1)
                 throw std::runtime_error("rank 1 has no step 3");
               return std::make_unique<DrawnData>(drawnDataOf(plan, 1, step));
             },
             {}},
            [&](const StepRecord &record) { latest = record.step; });
    });
  };
  EXPECT_THAT(
      all, testing::ThrowsMessage<std::runtime_error>("rank 1 has no step 3"));
  EXPECT_EQ(latest, 2);
}

TEST_F(RunFailure, NanStopsTheRunOrIsSkipped) {
  RunProcess stops(threads("dp2tp2", {"--steps", "50", "--lr", "1e30"}));
  const Ended stopped = stops.end();
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.lines("error: "),
              testing::ElementsAre("step 2: the gradients' norm is nan"));
  expectNoProcessLeft(stops);

  const Ended skipped =
      RunProcess(threads("dp2tp2", {"--steps", "20", "--lr", "1e30", "--on-nan",
                                    "skip", "--every", "1"}))
          .end();
  EXPECT_EQ(skipped.code, 0) << skipped.out;
  EXPECT_THAT(skipped.out, ContainsRegex("step 20/20 .*skipped"));

  const Ended never =
      RunProcess(threads("dp2tp2", {"--steps", "150", "--lr", "1e30",
                                    "--on-nan", "skip"}))
          .end();
  EXPECT_EQ(never.code, 1);
  EXPECT_THAT(never.out, HasSubstr("error: step 101: the gradients' norm is "
                                   "nan, the last of 100 steps in a row"));
}

TEST_F(RunFailureMpi, NanIsReportedByAllRanks) {
  RunProcess run(
      underMpi(4, arguments("dp2tp2", {"--steps", "50", "--lr", "1e30"})));
  const Ended ended = run.end();
  EXPECT_NE(ended.code, 0);
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_THAT(ended.lastMessage(rank),
                HasSubstr("step 2: the gradients' norm is nan"))
        << ended.out;
  expectNoProcessLeft(run);
}

TEST_F(RunFailure, AFullDiskDoesNotEndTheRun) {
  const Ended ended =
      RunProcess(threads("dp2tp2", {"--steps", "5", "--metrics", "/dev/full"}))
          .end();
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("step 5/5"));
  // The run prints one warning at once, and one with the total at the end.
  EXPECT_THAT(ended.lines("warning: "),
              testing::ElementsAre(
                  "/dev/full: 1 record lost: No space left on device; training "
                  "goes on",
                  "/dev/full: 5 records lost: No space left on device"));
}

TEST_F(RunFailure, UnwritableLogIsRejectedAtTheStart) {
  for (const char *flag : {"--metrics", "--tensorboard"}) {
    const Ended ended =
        RunProcess(threads("dp2tp2", {flag, "/proc/nowhere/x"})).end();
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.out, AllOf(HasSubstr("error: /proc/nowhere/x: cannot be"),
                                 Not(HasSubstr("step"))));
  }
}

TEST_F(RunFailure, MessageOfAnotherSizeIsRejected) {
  const std::string wrong = *folder / "wrong.json";
  std::string text = contentOf(*folder / "pp2/plan.json");
  // The first stage sends more than the second receives.
  const std::size_t send = text.find("\"send_to\": 1");
  ASSERT_NE(send, std::string::npos);
  const std::size_t shape = text.find("\"shape\": [2, 32, 64]", send);
  ASSERT_LT(shape, text.find('\n', send));
  text.replace(shape, 20, "\"shape\": [2, 32, 32]");
  std::ofstream(wrong) << text;
  const Ended ended = RunProcess({MTPLAN_MTRUN, wrong, "--data", kText}).end();
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.out, ContainsRegex("error: .*wrong.json: /stages/0/.*"));
}

TEST_F(RunFailure, InvalidTokenEndsTheRun) {
  // The vocabulary has 500 tokens, so 65000 is invalid. The first samples do
  // not contain it.
  const std::string file = *folder / "tokens.bin";
  {
    std::ofstream tokens(file, std::ios::binary);
    for (int i = 0; i < 20000; ++i) {
      const std::uint16_t token =
          static_cast<std::uint16_t>(i % 50 == 49 ? 65000 : i % 50);
      tokens.write(reinterpret_cast<const char *>(&token), sizeof token);
    }
  }
  RunProcess run(
      {MTPLAN_MTRUN, *folder / "dp2tp2", "--data", file, "--format", "uint16"});
  const Ended ended = run.end();
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("tokens.bin"), HasSubstr("65000")));
  expectNoProcessLeft(run);
}

} // namespace
} // namespace mtplan

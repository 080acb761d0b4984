//===- mpi_test.cpp - Ranks as processes ----------------------------------===//
//
// Starts communicator_mpi_program under mpirun. The tests check which ranks
// end, with which messages, and that no process remains. Time limits are
// generous, because the machine may be loaded.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <sstream>
#include <thread>

#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/communicator/cases.h"

namespace mtplan::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Holds the exit status, output and duration of mpirun.
struct Outcome {
  int status = -1;
  std::string output;
  double seconds = 0.0;

  /// Returns the rest of each line that starts with the word `what`.
  std::vector<std::string> lines(const std::string &what) const {
    std::vector<std::string> found;
    std::istringstream all(output);
    for (std::string line; std::getline(all, line);)
      if (line.starts_with(what + ' '))
        found.push_back(line.substr(what.size() + 1));
    return found;
  }
};

class CommunicatorMpi : public testing::Test {
protected:
  void SetUp() override {
    if (std::system("command -v mpirun >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "mpirun is not installed";
    if (std::string(MTPLAN_MPI_PROGRAM).empty())
      GTEST_SKIP() << "this was built without MPI";
  }

  static Outcome run(const std::string &scenario) {
    // With sanitizers, the program would report memory leaks of MPI.
    const std::string command =
        "ASAN_OPTIONS=detect_leaks=0 timeout -k 5 120 mpirun -np 3 "
        "--oversubscribe --allow-run-as-root "
        "--quiet " MTPLAN_MPI_PROGRAM " " +
        scenario + " 2>&1";
    Outcome result;
    const auto start = std::chrono::steady_clock::now();
    FILE *pipe = popen(command.c_str(), "r");
    std::array<char, 4096> part;
    for (std::size_t n; (n = fread(part.data(), 1, part.size(), pipe)) > 0;)
      result.output.append(part.data(), n);
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return result;
  }

  /// Returns the outcome of one of the scenarios below, which run concurrently
  /// because they mostly wait.
  static const Outcome &outcomeOf(const std::string &scenario) {
    static const std::vector<std::vector<std::string>> batches = {
        {"stopped", "stopped-large", "busy", "chain", "circle", "ended"},
        {"exits", "throws", "stray", "fails", "label", "size", "kind",
         "transfer", "groups"}};
    static std::map<std::string, std::shared_future<Outcome>> runs;
    for (const auto &batch : batches)
      if (std::ranges::count(batch, scenario) == 1 && !runs.contains(scenario))
        for (const std::string &member : batch)
          runs[member] = std::async(std::launch::async, run, member).share();
    return runs.at(scenario).get();
  }

  /// Expects that all ranks started and ended, within a limit that allows for a
  /// loaded machine, and that mpirun reports a failure.
  static void expectEnded(const Outcome &run) {
    EXPECT_NE(run.status, 0) << run.output;
    EXPECT_NE(run.status, 124) << "had to be stopped: " << run.output;
    EXPECT_LT(run.seconds, 60.0);
    const auto processes = run.lines("process");
    EXPECT_EQ(processes.size(), 3U) << run.output;
    for (const std::string &process : processes) {
      const int id = std::stoi(process);
      for (int i = 0; i < 1000 && kill(id, 0) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_TRUE(kill(id, 0) == -1 && errno == ESRCH) << id << " is there";
    }
  }

  /// Returns the message with which a rank ended; "" if there is none.
  static std::string errorOf(const Outcome &run, int rank) {
    const auto lines = run.lines("rank " + std::to_string(rank) + ":");
    return lines.empty() ? "" : lines.front();
  }
};

TEST_F(CommunicatorMpi, HasTheBitsOfThreads) {
  std::vector<std::uint64_t> digests(3);
  runOnThreads(
      3, {}, [&](World &world) { digests[world.rank()] = runScenario(world); });
  const Outcome result = run("cases");
  ASSERT_EQ(result.status, 0) << result.output;
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_THAT(result.output,
                HasSubstr("digest " + std::to_string(rank) + ' ' +
                          std::to_string(digests[rank]) + '\n'));
}

TEST_F(CommunicatorMpi, ARankMayUseGroupsFromSeveralThreads) {
  const Outcome result = run("threads");
  EXPECT_EQ(result.status, 0) << result.output;
}

constexpr auto kNames1 =
    "rank 1 did not reach all-reduce \"h.3.mlp.fc2\" of 1 x 10 f32, sum, in "
    "group \"tp\" (ranks 0 1 2)";

TEST_F(CommunicatorMpi, AKilledRankIsNamedByAll) {
  const Outcome result = run("killed");
  expectEnded(result);
  for (const int rank : {0, 2})
    EXPECT_THAT(errorOf(result, rank), HasSubstr(kNames1)) << result.output;
}

TEST_F(CommunicatorMpi, AStoppedRankIsNamedByAll) {
  const Outcome &result = outcomeOf("stopped");
  expectEnded(result);
  for (const int rank : {0, 2})
    EXPECT_THAT(errorOf(result, rank), HasSubstr(kNames1)) << result.output;
}

TEST_F(CommunicatorMpi, RankStoppedBeforeLargeDataIsNamed) {
  const Outcome &result = outcomeOf("stopped-large");
  expectEnded(result);
  for (const int rank : {0, 2})
    EXPECT_THAT(errorOf(result, rank),
                HasSubstr("rank 1 did not reach all-reduce \"h.3.mlp.fc2\""))
        << result.output;
}

TEST_F(CommunicatorMpi, ABusyRankIsNamedAndEnded) {
  const Outcome &result = outcomeOf("busy");
  expectEnded(result);
  for (const int rank : {0, 2})
    EXPECT_THAT(errorOf(result, rank), HasSubstr(kNames1)) << result.output;
}

TEST_F(CommunicatorMpi, ExitOfOneRankEndsAll) {
  expectEnded(outcomeOf("exits"));
}

TEST_F(CommunicatorMpi, AnExceptionReachesAll) {
  const Outcome &result = outcomeOf("throws");
  expectEnded(result);
  EXPECT_EQ(errorOf(result, 1), "no such token");
  for (const int rank : {0, 2})
    EXPECT_EQ(errorOf(result, rank), "rank 1 failed: no such token");
}

TEST_F(CommunicatorMpi, MismatchesAreNamedByAllWithBothSides) {
  const std::map<std::string, std::array<std::string, 2>> scenarios = {
      {"label",
       {"rank 0 calls all-reduce \"a\"", "rank 1 calls all-reduce \"b\""}},
      {"size",
       {"rank 0 calls all-reduce \"s\" of 1 x 99999 f32",
        "rank 1 calls all-reduce \"s\" of 1 x 100000 f32"}},
      {"kind",
       {"rank 0 calls all-reduce \"s\" of 1 x 5",
        "rank 2 calls all-gather \"s\" of 1 x 5"}},
      {"transfer",
       {"rank 0 sends \"h.1\" of 5000 bytes",
        "rank 1 receives \"h.1\" of 4000 bytes"}},
      {"groups", {"in group \"tp\"", "in group \"dp\""}},
  };
  for (const auto &[scenario, sides] : scenarios) {
    const Outcome &result = outcomeOf(scenario);
    expectEnded(result);
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_THAT(errorOf(result, rank),
                  AllOf(HasSubstr(sides[0]), HasSubstr(sides[1])))
          << scenario << ": " << result.output;
  }
}

TEST_F(CommunicatorMpi, RankAtTheEndOfAChainIsNamed) {
  const Outcome &result = outcomeOf("chain");
  expectEnded(result);
  for (const int rank : {0, 1})
    EXPECT_THAT(errorOf(result, rank),
                HasSubstr("rank 2 did not reach all-reduce \"late\""))
        << result.output;
}

TEST_F(CommunicatorMpi, CircularWaitIsNamed) {
  const Outcome &result = outcomeOf("circle");
  expectEnded(result);
  for (const int rank : {0, 1})
    EXPECT_THAT(errorOf(result, rank),
                AllOf(HasSubstr("ranks wait for each other"),
                      HasSubstr("rank 0 for rank 1 in receive \"r0\""),
                      HasSubstr("rank 1 for rank 0 in receive \"r1\"")))
        << result.output;
}

TEST_F(CommunicatorMpi, ARankThatHasEndedIsNamed) {
  const Outcome &result = outcomeOf("ended");
  expectEnded(result);
  for (const int rank : {0, 2})
    EXPECT_THAT(errorOf(result, rank),
                HasSubstr("rank 1 ended without reaching all-reduce \"s\""))
        << result.output;
}

TEST_F(CommunicatorMpi, UnreceivedMessageIsNamed) {
  const Outcome &result = outcomeOf("stray");
  expectEnded(result);
  EXPECT_EQ(errorOf(result, 1),
            "rank 1 ended without receive \"lost\" of 4 bytes from rank 0 on "
            "channel 9");
}

TEST_F(CommunicatorMpi, FailingRankReportsItsErrorToAll) {
  const Outcome &result = outcomeOf("fails");
  expectEnded(result);
  for (const int rank : {0, 2})
    EXPECT_EQ(errorOf(result, rank), "rank 1 failed: the disk is full");
}

TEST_F(CommunicatorMpi, EndedRankWaitsForTheOthers) {
  const Outcome result = run("late");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.lines("done").size(), 3U) << result.output;
}

} // namespace
} // namespace mtplan::runtime
